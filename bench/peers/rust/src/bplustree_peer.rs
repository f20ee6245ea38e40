//! bplustree: a B+tree with optimistic lock coupling, its nodes of the size that the crate sets.
//!
//! Its operations make their own epoch guards. Changes go through an iterator that holds a leaf exclusively,
//! as in the crate's own benchmark.
//!
//! Version 0.1.0 has a race: a thread that seeks a leaf compares its level with the tree's height, which is read
//! anew at each level. When the root is split while the thread is between two levels, in a tree of three levels
//! or more, it comes to a leaf too early and panics: most runs of some ten parallel loads of 2 million ascending
//! keys met it. It holds no lock then and has changed nothing, so the operation is begun again, as the crate does
//! with every other conflict.

use bplustree::BPlusTree;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::process::abort;
use std::sync::Once;

use crate::Entry;

type Tree = BPlusTree<u64, u64>;

/// What the panic says that is the race.
const RACE: &str = "got a leaf on the wrong level";

/// Until it is through without the race; any other panic has been reported and ends the process.
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

/// Lets the race pass in silence.
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

#[unsafe(no_mangle)]
pub extern "C" fn elidex_bplustree_create() -> Box<Tree> {
    report_other_panics_only();
    Box::new(Tree::new())
}

/// No thread may use the tree. The crate frees no node when a tree is dropped, but does when it merges nodes:
/// so the tree is emptied first, and what stays is what it doesn't merge.
#[unsafe(no_mangle)]
pub extern "C" fn elidex_bplustree_destroy(tree: Box<Tree>) {
    let mut keys = Vec::new();
    let mut iter = tree.raw_iter_mut();
    iter.seek_to_first();
    while let Some((key, _)) = iter.next() {
        keys.push(*key);
    }
    drop(iter);
    for key in &keys {
        tree.remove(key);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn elidex_bplustree_get(tree: &Tree, key: u64, value: &mut u64) -> bool {
    match tree.lookup(&key, |found| *found) {
        Some(found) => {
            *value = found;
            true
        }
        None => false,
    }
}

/// Nothing changes where the key is there already, and the answer is false.
#[unsafe(no_mangle)]
pub extern "C" fn elidex_bplustree_insert(tree: &Tree, key: u64, value: u64) -> bool {
    // The crate has insert-or-replace only. The iterator still has the leaf locked when it returns: what was
    // replaced is put back before anyone could see that it was gone.
    retried(|| {
        let mut iter = tree.raw_iter_mut();
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

/// True: the key is new.
#[unsafe(no_mangle)]
pub extern "C" fn elidex_bplustree_upsert(tree: &Tree, key: u64, value: u64) -> bool {
    retried(|| tree.raw_iter_mut().insert(key, value).is_none())
}

#[unsafe(no_mangle)]
pub extern "C" fn elidex_bplustree_replace(tree: &Tree, key: u64, value: u64) -> bool {
    change(tree, key, |there| *there = value)
}

/// Adds to the value, modulo 2^64.
#[unsafe(no_mangle)]
pub extern "C" fn elidex_bplustree_add(tree: &Tree, key: u64, delta: u64) -> bool {
    change(tree, key, |there| *there = there.wrapping_add(delta))
}

/// With the leaf locked.
#[inline]
fn change(tree: &Tree, key: u64, update: impl Fn(&mut u64)) -> bool {
    retried(|| {
        let mut iter = tree.raw_iter_mut();
        if !iter.seek_exact(&key) {
            return false;
        }
        update(iter.next().expect("locked, so it is still there").1);
        true
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn elidex_bplustree_erase(tree: &Tree, key: u64) -> bool {
    tree.remove(&key).is_some()
}

/// The first `limit` entries from this key on, in the order of their keys; returns how many there were. One
/// leaf is locked at a time.
///
/// # Safety
/// There is room for `limit` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn elidex_bplustree_scan(tree: &Tree, from: u64, limit: usize, entries: *mut Entry) -> usize {
    // The crate's shared iterator writes a line to standard output when it meets a tree that is a single leaf.
    if tree.height() == 1 {
        return retried(|| {
            let mut iter = tree.raw_iter_mut();
            iter.seek(&from);
            unsafe { copy(limit, entries, || iter.next().map(|(key, value)| Entry { key: *key, value: *value })) }
        });
    }
    retried(|| {
        let mut iter = tree.raw_iter();
        iter.seek(&from);
        unsafe { copy(limit, entries, || iter.next().map(|(key, value)| Entry { key: *key, value: *value })) }
    })
}

/// # Safety
/// There is room for `limit` entries.
#[inline]
unsafe fn copy(limit: usize, entries: *mut Entry, mut next: impl FnMut() -> Option<Entry>) -> usize {
    for found in 0..limit {
        match next() {
            Some(entry) => unsafe { entries.add(found).write(entry) },
            None => return found,
        }
    }
    limit
}
