//! Rows of OVN's databases that should be.
//!
//! A row is a table, an id of ours and the columns we care for; a column we do not name is left to others. References
//! name rows by id, so that a plan needs no UUIDs. A set of references means "these of ours": what others put into the
//! same set stays.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::why::Why;

/// A table we write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are OVN's")]
pub enum Table {
    LogicalSwitch,
    LogicalSwitchPort,
    LogicalRouter,
    LogicalRouterPort,
    LogicalRouterStaticRoute,
    LogicalRouterPolicy,
    Nat,
    GatewayChassis,
    StaticMacBinding,
    LoadBalancer,
    AddressSet,
    PortGroup,
    Acl,
    Qos,
    DhcpOptions,
    Copp,
    Meter,
    MeterBand,
    Chassis,
    Encap,
}

impl Table {
    /// All of the southbound database.
    pub const SOUTHBOUND: [Self; 2] = [Self::Chassis, Self::Encap];

    /// All of the northbound database.
    pub const NORTHBOUND: [Self; 18] = [
        Self::LogicalSwitch,
        Self::LogicalSwitchPort,
        Self::LogicalRouter,
        Self::LogicalRouterPort,
        Self::LogicalRouterStaticRoute,
        Self::LogicalRouterPolicy,
        Self::Nat,
        Self::GatewayChassis,
        Self::StaticMacBinding,
        Self::LoadBalancer,
        Self::AddressSet,
        Self::PortGroup,
        Self::Acl,
        Self::Qos,
        Self::DhcpOptions,
        Self::Copp,
        Self::Meter,
        Self::MeterBand,
    ];

    /// OVN's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LogicalSwitch => "Logical_Switch",
            Self::LogicalSwitchPort => "Logical_Switch_Port",
            Self::LogicalRouter => "Logical_Router",
            Self::LogicalRouterPort => "Logical_Router_Port",
            Self::LogicalRouterStaticRoute => "Logical_Router_Static_Route",
            Self::LogicalRouterPolicy => "Logical_Router_Policy",
            Self::Nat => "NAT",
            Self::GatewayChassis => "Gateway_Chassis",
            Self::StaticMacBinding => "Static_MAC_Binding",
            Self::LoadBalancer => "Load_Balancer",
            Self::AddressSet => "Address_Set",
            Self::PortGroup => "Port_Group",
            Self::Acl => "ACL",
            Self::Qos => "QoS",
            Self::DhcpOptions => "DHCP_Options",
            Self::Copp => "Copp",
            Self::Meter => "Meter",
            Self::MeterBand => "Meter_Band",
            Self::Chassis => "Chassis",
            Self::Encap => "Encap",
        }
    }

    /// Columns that identify a row where there is no `external_ids` to carry our mark.
    pub fn natural_key(self) -> Option<&'static [&'static str]> {
        match self {
            Self::StaticMacBinding => Some(&["logical_port", "ip"]),
            Self::Encap => Some(&["type", "ip"]),
            _ => None,
        }
    }
}

/// A row by the id the plan gave it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RowId {
    /// Its table.
    pub table: Table,
    /// Unique in the table.
    pub id: String,
}

impl RowId {
    /// An id in a table.
    pub fn new(table: Table, id: impl Into<String>) -> Self {
        Self { table, id: id.into() }
    }
}

/// What a column should hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Column {
    /// One yes or no.
    Bool(bool),
    /// One number.
    Integer(i64),
    /// One text.
    Text(String),
    /// A set of texts; none and one are sets too.
    Texts(BTreeSet<String>),
    /// A set of numbers.
    Integers(BTreeSet<i64>),
    /// A map of texts, as a whole.
    Map(BTreeMap<String, String>),
    /// A map of numbers, as a whole.
    Numbers(BTreeMap<String, i64>),
    /// These rows of ours, among whatever others put there.
    Rows(BTreeSet<RowId>),
}

/// A row that should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Row {
    /// Table and id.
    pub id: RowId,
    /// What we care for, by OVN's column names.
    pub columns: BTreeMap<&'static str, Column>,
    /// Its reason.
    pub why: Why,
}

impl Row {
    /// A row without columns yet.
    pub fn new(table: Table, id: impl Into<String>, why: &Why) -> Self {
        Self { id: RowId::new(table, id), columns: BTreeMap::new(), why: why.clone() }
    }

    /// With one text.
    #[must_use]
    pub fn text(self, column: &'static str, text: impl Into<String>) -> Self {
        self.with(column, Column::Text(text.into()))
    }

    /// With a set of texts.
    #[must_use]
    pub fn texts<T: Into<String>>(self, column: &'static str, texts: impl IntoIterator<Item = T>) -> Self {
        self.with(column, Column::Texts(texts.into_iter().map(Into::into).collect()))
    }

    /// With one number.
    #[must_use]
    pub fn integer(self, column: &'static str, number: i64) -> Self {
        self.with(column, Column::Integer(number))
    }

    /// With a map of this one number.
    #[must_use]
    pub fn number(self, column: &'static str, key: &str, number: i64) -> Self {
        self.with(column, Column::Numbers([(key.to_owned(), number)].into()))
    }

    /// With one yes or no.
    #[must_use]
    pub fn bool(self, column: &'static str, value: bool) -> Self {
        self.with(column, Column::Bool(value))
    }

    /// With one more entry of a map.
    #[must_use]
    pub fn entry(mut self, column: &'static str, key: impl Into<String>, value: impl Into<String>) -> Self {
        let slot = self.columns.entry(column).or_insert_with(|| Column::Map(BTreeMap::new()));
        if let Column::Map(map) = slot {
            map.insert(key.into(), value.into());
        }
        self
    }

    /// With an empty map, unless it has entries: says that there should be none.
    #[must_use]
    pub fn map(mut self, column: &'static str) -> Self {
        self.columns.entry(column).or_insert_with(|| Column::Map(BTreeMap::new()));
        self
    }

    /// With a reference to one more row.
    #[must_use]
    pub fn row(mut self, column: &'static str, row: RowId) -> Self {
        self.refer(column, row);
        self
    }

    /// A set of references that may stay empty: then none of ours is in it.
    #[must_use]
    pub fn rows(mut self, column: &'static str, rows: impl IntoIterator<Item = RowId>) -> Self {
        self.columns.insert(column, Column::Rows(rows.into_iter().collect()));
        self
    }

    fn refer(&mut self, column: &'static str, row: RowId) {
        let slot = self.columns.entry(column).or_insert_with(|| Column::Rows(BTreeSet::new()));
        if let Column::Rows(rows) = slot {
            rows.insert(row);
        }
    }

    fn with(mut self, column: &'static str, value: Column) -> Self {
        self.columns.insert(column, value);
        self
    }
}

/// All rows that should be in a database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rows(BTreeMap<RowId, Row>);

impl Rows {
    /// Adds a row; returns its id for others to refer to. The last of two rows with one id stays.
    pub fn add(&mut self, row: Row) -> RowId {
        let id = row.id.clone();
        self.0.insert(id.clone(), row);
        id
    }

    /// Adds a reference to a row that is there already.
    pub fn refer(&mut self, from: &RowId, column: &'static str, to: RowId) {
        if let Some(row) = self.0.get_mut(from) {
            row.refer(column, to);
        }
    }

    /// The row with this id.
    pub fn get(&self, id: &RowId) -> Option<&Row> {
        self.0.get(id)
    }

    /// All rows, by table and id.
    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.0.values()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
