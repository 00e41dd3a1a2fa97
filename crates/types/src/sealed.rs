//! A value that the compiler does not look inside.
//!
//! The trees of sqlparser and the plans of DataFusion are hundreds of types that refer to each other. An async method that holds
//! one must be proved `Send`, and each such proof walks all of those types again; together they took most of the compile time of
//! `engine`. A sealed value is `Send` at a glance. So a tree is sealed wherever it is stored or passed to an async function.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A boxed `T`, used as a `T`.
pub struct Sealed<T> {
    inside: Box<dyn Any + Send + Sync>,
    kind: PhantomData<fn() -> T>,
}

const IS_A_T: &str = "a sealed value is made from a T and never replaced by another type";

impl<T: Send + Sync + 'static> Sealed<T> {
    #[must_use]
    pub fn new(value: T) -> Self {
        Self::from(Box::new(value))
    }

    #[must_use]
    pub fn into_inner(self) -> T {
        *self.inside.downcast().expect(IS_A_T)
    }
}

impl<T: Send + Sync + 'static> From<Box<T>> for Sealed<T> {
    fn from(value: Box<T>) -> Self {
        Self { inside: value, kind: PhantomData }
    }
}

impl<T: 'static> Deref for Sealed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inside.downcast_ref().expect(IS_A_T)
    }
}

impl<T: 'static> DerefMut for Sealed<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inside.downcast_mut().expect(IS_A_T)
    }
}

impl<T: Clone + Send + Sync + 'static> Clone for Sealed<T> {
    fn clone(&self) -> Self {
        Self::new(T::clone(self))
    }
}

impl<T: fmt::Debug + 'static> fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: PartialEq + 'static> PartialEq for Sealed<T> {
    fn eq(&self, other: &Self) -> bool {
        T::eq(self, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_is_used_like_the_value() {
        let mut sealed = Sealed::new(vec![1, 2]);
        let copy = sealed.clone();
        sealed.push(3);
        assert_eq!((sealed.len(), format!("{copy:?}")), (3, "[1, 2]".to_owned()));
        assert_ne!(sealed, copy);
        assert_eq!(sealed.into_inner(), [1, 2, 3]);
    }
}
