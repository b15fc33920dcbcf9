//! The arguments of a call, shared by all who look at them.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::json::Object;

/// The arguments of a call. Clones share one object, which is copied when one of them is changed: a change is seen by
/// nobody else.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments(Arc<Object>);

impl Arguments {
    /// The object itself, copied only where somebody else still has it.
    pub fn into_object(self) -> Object {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Deref for Arguments {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.0
    }
}

impl DerefMut for Arguments {
    fn deref_mut(&mut self) -> &mut Object {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Object> for Arguments {
    fn from(object: Object) -> Self {
        Self(Arc::new(object))
    }
}

impl From<Arguments> for Object {
    fn from(arguments: Arguments) -> Self {
        arguments.into_object()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_by_nobody_else() {
        let first = Arguments::from(Object::from_iter([("a".to_owned(), 1.into())]));
        let mut second = first.clone();
        second.insert("b".to_owned(), 2.into());
        assert_eq!((first.len(), second.len()), (1, 2));
        assert_eq!(first.into_object(), Object::from_iter([("a".to_owned(), 1.into())]));
    }
}
