//! Signs the thinking that the fake gives out, so that it can tell whether it comes back verbatim.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The signature of a thinking block. The same in every process, since the server keeps no memory.
pub(super) fn sign(thinking: &str) -> String {
    let digest = Sha256::new().chain_update("gesta fake model\n").chain_update(thinking).finalize();
    let mut out = String::from("fake.");
    for byte in &digest[..16] {
        // Writing to a string cannot fail.
        write!(out, "{byte:02x}").unwrap_or_default();
    }
    out
}
