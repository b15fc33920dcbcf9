//! Whether what an agent says is what it did, measured.
//!
//! [`claims`] is a plain function over a reply and its calls: does the text assert a change that no call made
//! (`spec/contract.md`, 4)? It asks no model and no network, so it costs microseconds and gives the same answer twice.
//!
//! ```
//! use gesta_eval::claims::{Calls, Claims};
//!
//! let claims = Claims::english();
//! let found = claims.find("Great news! Your booking has been cancelled.");
//! assert_eq!(found[0].family, "passive_perfect");
//! assert_eq!(found[0].clause, "Your booking has been cancelled");
//! assert!(claims.unbacked("I've cancelled it.", &Calls::default()).is_some());
//! assert!(claims.unbacked("Shall I cancel it?", &Calls::default()).is_none());
//! ```

mod claim_check;
pub mod claims;

pub use claim_check::{CLAIM_CHECK, ClaimCheck};
