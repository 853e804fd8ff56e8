//! One row, as the server has it.

use std::fmt;
use std::sync::Arc;

use crate::datum::Datum;
use crate::row::{ColumnValue, RowError};
use crate::schema::{ColumnType, Name};
use crate::selection::Layout;
use crate::uuid::Uuid;

/// One row. It never changes; a changed row is another record. Copies share the content.
#[derive(Clone)]
pub struct Record(Arc<Inner>);

struct Inner {
    uuid: Uuid,
    layout: Arc<Layout>,
    /// One for each column of the layout.
    values: Box<[Datum]>,
}

impl Record {
    /// A row whose unnamed columns hold their defaults. Cells go by position in the layout. What it has in common with
    /// the row that it is `like` it shares with it.
    pub(crate) fn new(
        uuid: Uuid,
        layout: Arc<Layout>,
        cells: Vec<(usize, Datum)>,
        like: Option<&Self>,
    ) -> Self {
        let mut values: Box<[Datum]> = layout.columns.iter().map(|(_, ty)| ty.default_datum()).collect();
        for (column, datum) in cells {
            if let Some(value) = values.get_mut(column) {
                *value = datum;
            }
        }
        for (value, like) in values.iter_mut().zip(like.into_iter().flat_map(|like| &like.0.values)) {
            value.share_with(like);
        }
        Self(Arc::new(Inner { uuid, layout, values }))
    }

    /// This row with differences put onto some of its columns.
    pub(crate) fn modified(&self, cells: &[(usize, Datum)]) -> Self {
        let columns = self.0.values.iter().zip(&self.0.layout.columns).enumerate();
        // A column may be very large: one that changes is not copied first.
        let value = |(at, (value, (_, ty))): (usize, (&Datum, &(Name, ColumnType)))| {
            let difference = cells.iter().find(|(column, _)| *column == at);
            difference.map_or_else(|| value.clone(), |(_, told)| value.apply(told, ty.is_composite()))
        };
        let values = columns.map(value).collect();
        Self(Arc::new(Inner { uuid: self.0.uuid, layout: Arc::clone(&self.0.layout), values }))
    }

    /// Which row.
    pub fn uuid(&self) -> Uuid {
        self.0.uuid
    }

    /// The table it is in.
    pub fn table(&self) -> &Name {
        &self.0.layout.table
    }

    /// What a column holds; none when the column is not in the replica.
    pub fn get(&self, column: &str) -> Option<&Datum> {
        self.at(self.0.layout.position(column)?)
    }

    pub(crate) fn at(&self, column: usize) -> Option<&Datum> {
        self.0.values.get(column)
    }

    /// What a column holds, as a Rust value. A column that was selected but that the server does not have reads as the
    /// type's default.
    pub fn read<T: ColumnValue>(&self, column: &str) -> Result<T, RowError> {
        let fault = |what| RowError::new(&self.0.layout.table, self.0.uuid, column, what);
        match self.get(column) {
            Some(datum) => T::from_datum(datum).ok_or_else(|| fault("is not of the type asked for")),
            None if self.0.layout.absent.contains(column) => Ok(T::default()),
            None => Err(fault("was not selected")),
        }
    }

    /// The columns with their content.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Datum)> {
        self.0.layout.columns.iter().map(|(name, _)| name).zip(&*self.0.values)
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        let same_layout = || Arc::ptr_eq(&self.0.layout, &other.0.layout) || self.0.layout == other.0.layout;
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.uuid == other.0.uuid && self.0.values == other.0.values && same_layout())
    }
}

impl Eq for Record {}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.table(), self.uuid())?;
        f.debug_map().entries(self.iter()).finish()
    }
}
