//! bplustree: a B+tree with optimistic lock coupling and leaves of 256 entries, the crate's size.
//!
//! Its operations make their own epoch guards. Changes go through an iterator that holds a leaf
//! exclusively, as in the crate's own benchmark. Known of version 0.1.0:
//! - It has a race. A thread that seeks a leaf compares its level with the tree's height, which it
//!   reads anew at each level. If the root is split while the thread is between two levels, in a
//!   tree of three levels or more, the thread arrives at a leaf too early and panics. Most of some
//!   ten parallel loads of 2 million ascending keys met it. The thread holds no lock then and has
//!   changed nothing, so the driver begins the operation again, as the crate does after every other
//!   conflict.
//! - It writes a line to standard output when an insert wants to split a leaf that an erase has
//!   just merged away.
//! - It does not free its nodes when it is dropped. The driver empties it first, outside of what is
//!   measured.

use bplustree::BPlusTree;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::process::abort;
use std::sync::Once;

use crate::{Entry, OrderedPeer, Peer, copy};

pub struct Tree(BPlusTree<u64, u64>);

/// The message of the race's panic.
const RACE: &str = "got a leaf on the wrong level";

/// Repeats the operation until it does not meet the race. Any other panic ends the process.
#[inline]
fn retried<R>(mut operation: impl FnMut() -> R) -> R {
    loop {
        match catch_unwind(AssertUnwindSafe(&mut operation)) {
            Ok(result) => return result,
            Err(panic) if panic.downcast_ref::<&str>() == Some(&RACE) => {}
            Err(_) => abort(),
        }
    }
}

/// The race's panic is not reported.
fn report_other_panics_only() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref::<&str>() != Some(&RACE) {
                report(panic);
            }
        }));
    });
}

impl Drop for Tree {
    /// The crate frees no node when a tree is dropped, but frees the nodes that it merges. The tree
    /// is therefore emptied first, and only the nodes that it does not merge are lost.
    fn drop(&mut self) {
        let mut keys = Vec::new();
        let mut iter = self.0.raw_iter_mut();
        iter.seek_to_first();
        while let Some((key, _)) = iter.next() {
            keys.push(*key);
        }
        drop(iter);
        for key in &keys {
            self.0.remove(key);
        }
    }
}

impl Tree {
    /// Changes the value while the leaf is locked.
    #[inline]
    fn change(&self, key: u64, update: impl Fn(&mut u64)) -> bool {
        retried(|| {
            let mut iter = self.0.raw_iter_mut();
            if !iter.seek_exact(&key) {
                return false;
            }
            update(iter.next().expect("locked, so it is still there").1);
            true
        })
    }
}

impl Peer for Tree {
    type Visit = ();

    fn create() -> Tree {
        report_other_panics_only();
        Tree(BPlusTree::new())
    }

    fn enter(&self) {}

    #[inline]
    fn get(&self, _: &mut (), key: u64) -> Option<u64> {
        self.0.lookup(&key, |found| *found)
    }

    #[inline]
    fn insert(&self, _: &mut (), key: u64, value: u64) -> bool {
        // The crate has insert-or-replace only. The iterator still holds the leaf when it returns,
        // so the driver restores a replaced value before another thread can read the leaf.
        retried(|| {
            let mut iter = self.0.raw_iter_mut();
            match iter.insert(key, value) {
                None => true,
                Some(old) => {
                    iter.seek_exact(&key);
                    *iter.next().expect("locked, so it is still there").1 = old;
                    false
                }
            }
        })
    }

    #[inline]
    fn update(&self, _: &mut (), key: u64, value: u64) -> bool {
        self.change(key, |there| *there = value)
    }

    #[inline]
    fn add(&self, _: &mut (), key: u64, delta: u64) -> bool {
        self.change(key, |there| *there = there.wrapping_add(delta))
    }

    #[inline]
    fn erase(&self, _: &mut (), key: u64) -> bool {
        self.0.remove(&key).is_some()
    }
}

impl OrderedPeer for Tree {
    /// One leaf is locked at a time; there is no snapshot of several.
    fn scan(&self, _: &mut (), from: u64, entries: &mut [Entry]) -> usize {
        // The crate's shared iterator writes a line to standard output in a tree of one leaf.
        if self.0.height() == 1 {
            return retried(|| {
                let mut iter = self.0.raw_iter_mut();
                iter.seek(&from);
                copy(entries, iter::from_fn(|| iter.next().map(|(key, value)| (*key, *value))))
            });
        }
        retried(|| {
            let mut iter = self.0.raw_iter();
            iter.seek(&from);
            copy(entries, iter::from_fn(|| iter.next().map(|(key, value)| (*key, *value))))
        })
    }
}
