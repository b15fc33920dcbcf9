//! Whose rows they are and in which bucket they lie: tenant and bucket lead every key (`spec/durability.md`, 5.2).

use std::sync::Arc;

use gesta_run::id::{ContactId, ConversationId};

/// The tenant of a store that was not told another.
pub const TENANT_LOCAL: &str = "local";

/// How many buckets there are. Fixed for good: rows lie where their bucket was computed.
const BUCKETS: u64 = 4_096;

/// The tenant whose rows a store reads and writes. No call can name another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tenant(Arc<str>);

impl Tenant {
    pub(crate) fn new(name: &str) -> Self {
        Self(name.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Where a run lies: with its conversation, else with its contact, else with the tenant itself.
    pub(crate) fn bucket_of_run(&self, conversation: Option<&ConversationId>, contact: Option<&ContactId>) -> i16 {
        match (conversation, contact) {
            (Some(conversation), _) => self.bucket_of(conversation),
            (None, Some(contact)) => self.bucket(contact.as_str()),
            (None, None) => self.bucket(""),
        }
    }

    /// Where a conversation lies.
    pub(crate) fn bucket_of(&self, conversation: &ConversationId) -> i16 {
        self.bucket(conversation.as_str())
    }

    /// Where what belongs to nobody in particular lies.
    pub(crate) fn bucket_of_all(&self) -> i16 {
        self.bucket("")
    }

    /// FNV-1a, which every language has in five lines: others may have to find our rows.
    fn bucket(&self, name: &str) -> i16 {
        let bytes = self.0.bytes().chain([0]).chain(name.bytes());
        let hash =
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        i16::try_from((hash ^ (hash >> 32)) % BUCKETS).expect("a bucket is smaller than 4096")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_what_they_were_when_the_first_row_was_written() {
        let tenant = Tenant::new(TENANT_LOCAL);
        let found = ["", "talk", "maria"].map(|name| tenant.bucket(name));
        assert_eq!(found, [472, 811, 3626]);
    }

    #[test]
    fn rows_of_one_conversation_lie_together_and_many_are_spread() {
        let tenant = Tenant::new("t");
        let one = tenant.bucket_of(&"k".into());
        assert_eq!(tenant.bucket_of_run(Some(&"k".into()), Some(&"other".into())), one);
        let spread: std::collections::BTreeSet<i16> = (0..1_000).map(|n| tenant.bucket(&n.to_string())).collect();
        assert!(spread.len() > 800, "{}", spread.len());
    }
}
