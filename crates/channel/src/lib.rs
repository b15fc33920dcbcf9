//! The rules of the customer channel: a contact's message in, a reply out, actions after it, once. No I/O, no async, no
//! clock, no dice (`spec/channel.md`).
//!
//! Reading order: [`numbers`] (every bound), [`inbound`] and [`response`] (the webhook's two halves), [`race`] (what the
//! webhook answers when), [`precheck`] (who is not put to the model), [`judge`] (what becomes of a reply), [`staging`] and
//! [`record`] (what becomes of actions), [`outbox`] (late replies), then [`tenant`] (the files) and [`manychat`] (the wire).

pub mod numbers;
pub mod text;

pub mod profile;

pub mod inbound;
pub mod response;

pub mod outcome;
pub mod race;

pub mod precheck;

pub mod fence;
pub mod judge;
pub mod reply;

pub mod note;
pub mod offer;
pub mod read;
pub mod record;
pub mod staging;

pub mod outbox;

pub mod manychat;
pub mod tenant;
