//! Makes the database what it should be: one comparison, one transaction.

use underlay_desired::ovn::Rows;
use underlay_ovsdb::{Client, TransactError};

use crate::diff::{Difference, difference};

/// The database was never reached, refused the change, or went away meanwhile.
#[derive(Debug, thiserror::Error)]
#[error("OVN's database did not take the change")]
pub struct SyncError(#[from] TransactError);

/// Compares the newest state with what should be and applies the difference. Nothing is sent when nothing differs.
pub async fn sync(client: &Client, want: &Rows) -> Result<Difference, SyncError> {
    let replica = client.loaded().await?;
    let mut difference = difference(want, &replica);
    if !difference.is_empty() {
        let transaction = std::mem::take(&mut difference.transaction);
        client.transact(transaction).await?;
    }
    Ok(difference)
}
