//! What we look at: every table we may write to, found by our mark.

use underlay_desired::ovn::Table;
use underlay_desired::owner::{IMPORT_MARK, ROW_MARK};
use underlay_ovsdb::{Index, Selection};

/// All of the northbound database that a plan can name. Columns that this OVN does not have are left out by the client.
pub fn northbound() -> Selection {
    selection(&Table::NORTHBOUND)
}

/// All of the southbound database that a plan can name.
pub fn southbound() -> Selection {
    selection(&Table::SOUTHBOUND)
}

fn selection(tables: &[Table]) -> Selection {
    tables.iter().fold(Selection::new(), |selection, table| {
        let name = table.name();
        let index = match table.natural_key() {
            Some([first, ..]) => Index::column(first),
            _ => Index::map_key("external_ids", ROW_MARK),
        };
        let selection = selection.all_columns_but(name, written_by_ovn(*table)).index(name, index);
        match table {
            Table::LogicalRouterStaticRoute => {
                selection.index(name, Index::map_key("external_ids", IMPORT_MARK))
            }
            _ => selection,
        }
    })
}

/// Columns in which OVN tells how far it is. They change with every port that comes up, and no plan names them.
fn written_by_ovn(table: Table) -> &'static [&'static str] {
    match table {
        Table::LogicalSwitchPort => &["dynamic_addresses", "up"],
        Table::LogicalRouterPort => &["status"],
        Table::Chassis => &["nb_cfg"],
        _ => &[],
    }
}
