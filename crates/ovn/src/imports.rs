//! Routes that BGP brought, in the routers of OVN: a few at a time, since there may be a hundred thousand.
//!
//! In: places that may have changed, each with the gateways that it should have. Out: one transaction. Such routes have a
//! mark of their own: who makes everything else of a router leaves them alone, and here nothing else is touched.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_desired::ovn::Table;
use underlay_desired::owner::{IMPORT_MARK, ROW_MARK};
use underlay_ovsdb::{
    Atom, ChangeSet, Condition, Datum, Mutation, Record, Replica, Transaction, columns, string_map,
};

const ROUTES: &str = Table::LogicalRouterStaticRoute.name();
const ROUTERS: &str = Table::LogicalRouter.name();

/// A router and where it may know a way to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The router's name.
    pub router: String,
    /// The destination.
    pub destination: IpNet,
}

impl Place {
    fn mark(&self) -> String {
        format!("{} {}", self.router, self.destination)
    }

    fn of(record: &Record) -> Option<Self> {
        let Some(Datum::Map(ids)) = record.get("external_ids") else { return None };
        let Some(Atom::String(mark)) = ids.get(&IMPORT_MARK.into()) else { return None };
        let (router, destination) = mark.rsplit_once(' ')?;
        Some(Self { router: router.to_owned(), destination: destination.parse().ok()? })
    }
}

/// What a place should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The place.
    pub place: Place,
    /// The router's port to these gateways.
    pub port: String,
    /// The gateways; none if the router should know no way.
    pub gateways: Vec<IpAddr>,
}

/// All places that have routes of ours.
pub fn places(replica: &Replica) -> BTreeSet<Place> {
    let table = replica.table(ROUTES).into_iter();
    table.flat_map(|table| table.with_key("external_ids", IMPORT_MARK)).filter_map(Place::of).collect()
}

/// Places at which a change touched routes of ours.
pub fn touched(changes: &ChangeSet) -> BTreeSet<Place> {
    let sides = changes.table(ROUTES).flat_map(|(_, change)| [change.before.as_ref(), change.after.as_ref()]);
    sides.flatten().filter_map(Place::of).collect()
}

/// Names of routers that came with a change.
pub fn new_routers(changes: &ChangeSet) -> BTreeSet<String> {
    let come = changes.table(ROUTERS).filter(|(_, change)| change.before.is_none());
    come.filter_map(|(_, change)| change.after.as_ref()?.read("name").ok()).collect()
}

/// What is to be done at these places. A router that is not there yet gets nothing.
pub fn difference(wanted: &[Wanted], have: &Replica) -> Transaction {
    let mut transaction = Transaction::new();
    for (router, places) in by_router(wanted) {
        let Some(uuid) = router_row(have, router).map(Record::uuid) else { continue };
        let (mut joining, mut leaving) = (Vec::new(), Vec::new());
        for place in places {
            compare(place, have, &mut transaction, &mut joining, &mut leaving);
        }
        // Rows that no router has any more are removed by the database itself.
        let changes = [
            (!leaving.is_empty()).then(|| Mutation::delete("static_routes", Datum::set(leaving))),
            (!joining.is_empty()).then(|| Mutation::insert("static_routes", Datum::set(joining))),
        ];
        let changes: Vec<Mutation> = changes.into_iter().flatten().collect();
        if !changes.is_empty() {
            transaction.mutate(ROUTERS, [Condition::uuid(uuid)], changes);
        }
    }
    transaction
}

fn by_router(wanted: &[Wanted]) -> impl Iterator<Item = (&str, &[Wanted])> {
    let groups = wanted.chunk_by(|one, other| one.place.router == other.place.router);
    groups.filter_map(|group| Some((group.first()?.place.router.as_str(), group)))
}

fn router_row<'a>(have: &'a Replica, name: &str) -> Option<&'a Record> {
    have.table(ROUTERS)?.find_key("external_ids", ROW_MARK, name).next()
}

fn compare(
    wanted: &Wanted,
    have: &Replica,
    transaction: &mut Transaction,
    joining: &mut Vec<Atom>,
    leaving: &mut Vec<Atom>,
) {
    let mark = wanted.place.mark();
    let rows = have.table(ROUTES).into_iter();
    let mut missing: BTreeSet<String> = wanted.gateways.iter().map(ToString::to_string).collect();
    for row in rows.flat_map(|table| table.find_key("external_ids", IMPORT_MARK, &mark)) {
        let right = row.read::<String>("nexthop").is_ok_and(|gateway| missing.remove(&gateway));
        if !right {
            leaving.push(Atom::Uuid(row.uuid()));
        }
    }
    for gateway in missing {
        let name = transaction.insert(
            ROUTES,
            columns([
                ("ip_prefix", wanted.place.destination.to_string().as_str().into()),
                ("nexthop", gateway.as_str().into()),
                ("output_port", wanted.port.as_str().into()),
                (
                    "external_ids",
                    string_map([
                        (IMPORT_MARK, mark.as_str()),
                        ("k8s.ovn.org/owner-controller", "RouteImport"),
                    ]),
                ),
            ]),
        );
        joining.push(Atom::NamedUuid(name));
    }
}
