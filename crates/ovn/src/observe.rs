//! What we look at: every table we may write to, found by our mark.

use underlay_desired::ovn::Table;
use underlay_desired::owner::ROW_MARK;
use underlay_ovsdb::{Index, Selection};

/// All columns of all tables that a plan can name. Columns that this OVN does not have are left out by the client.
pub fn selection() -> Selection {
    Table::ALL.into_iter().fold(Selection::new(), |selection, table| {
        let name = table.name();
        let index = match table.natural_key() {
            Some([first, ..]) => Index::column(first),
            _ => Index::map_key("external_ids", ROW_MARK),
        };
        selection.all_columns(name).index(name, index)
    })
}
