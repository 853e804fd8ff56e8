//! The marks that say "ours". An edge removes only what carries its mark; without it, nothing is touched.

/// Key in `external_ids` of OVN rows; the value is the row's id in the plan.
pub const ROW_MARK: &str = "underlay/id";
