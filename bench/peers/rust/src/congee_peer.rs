//! congee: an adaptive radix tree with optimistic lock coupling.
//!
//! Every operation takes an epoch guard. Its documentation says to reuse one, because to make one is
//! expensive, and its own benchmark uses one per thread for the whole run. Then no memory comes back while the
//! benchmark runs, so a visit renews its guard every so often, which costs less than can be measured.

use congee::Congee;
use congee::epoch::{Guard, pin};
use std::mem::{align_of, offset_of, size_of};
use std::slice;

use crate::Entry;

// The tree's keys and values are usize.
const _: () = assert!(size_of::<usize>() == size_of::<u64>());

type Tree = Congee<usize, usize>;

/// Requests between two renewals of a guard. Chosen: each request makes at most one node garbage, and a renewal
/// frees up to 512. Odd, so that renewals fall on requests whose time the runner takes as often as on others.
const REQUESTS_PER_GUARD: u32 = 255;

/// How often a thread that leaves asks for what is garbage to be freed; the crate does so when a tree is dropped.
const FLUSHES: u32 = 128;

/// What a thread holds while it works on the tree.
pub struct Visit {
    guard: Guard,
    requests_left: u32,
}

impl Visit {
    #[inline]
    fn guard(&mut self) -> &Guard {
        if self.requests_left == 0 {
            self.renew();
        }
        self.requests_left -= 1;
        &self.guard
    }

    #[cold]
    fn renew(&mut self) {
        self.guard.repin();
        self.guard.flush();
        self.requests_left = REQUESTS_PER_GUARD;
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn elidex_congee_create() -> Box<Tree> {
    Box::new(Tree::default())
}

/// No thread may be on a visit.
#[unsafe(no_mangle)]
pub extern "C" fn elidex_congee_destroy(tree: Box<Tree>) {
    drop(tree);
}

#[unsafe(no_mangle)]
pub extern "C" fn elidex_congee_enter() -> Box<Visit> {
    Box::new(Visit { guard: pin(), requests_left: REQUESTS_PER_GUARD })
}

#[unsafe(no_mangle)]
pub extern "C" fn elidex_congee_leave(visit: Box<Visit>) {
    drop(visit);
    for _ in 0..FLUSHES {
        pin().flush();
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn elidex_congee_get(tree: &Tree, visit: &mut Visit, key: u64, value: &mut u64) -> bool {
    match tree.get(&(key as usize), visit.guard()) {
        Some(found) => {
            *value = found as u64;
            true
        }
        None => false,
    }
}

/// Nothing changes where the key is there already, and the answer is false.
#[unsafe(no_mangle)]
pub extern "C" fn elidex_congee_insert(tree: &Tree, visit: &mut Visit, key: u64, value: u64) -> bool {
    let value = value as usize;
    tree.compute_or_insert(key as usize, |there| there.unwrap_or(value), visit.guard())
        .expect("out of memory")
        .is_none()
}

/// True: the key is new.
#[unsafe(no_mangle)]
pub extern "C" fn elidex_congee_upsert(tree: &Tree, visit: &mut Visit, key: u64, value: u64) -> bool {
    tree.insert(key as usize, value as usize, visit.guard()).expect("out of memory").is_none()
}

#[unsafe(no_mangle)]
pub extern "C" fn elidex_congee_replace(tree: &Tree, visit: &mut Visit, key: u64, value: u64) -> bool {
    tree.compute_if_present(&(key as usize), |_| Some(value as usize), visit.guard()).is_some()
}

/// Adds to the value, modulo 2^64.
#[unsafe(no_mangle)]
pub extern "C" fn elidex_congee_add(tree: &Tree, visit: &mut Visit, key: u64, delta: u64) -> bool {
    tree.compute_if_present(&(key as usize), |there| Some(there.wrapping_add(delta as usize)), visit.guard())
        .is_some()
}

#[unsafe(no_mangle)]
pub extern "C" fn elidex_congee_erase(tree: &Tree, visit: &mut Visit, key: u64) -> bool {
    tree.remove(&(key as usize), visit.guard()).is_some()
}

// The tree scans into pairs, which must lie in memory as entries do.
type Pair = (usize, usize);
const _: () = assert!(size_of::<Pair>() == size_of::<Entry>() && align_of::<Pair>() == align_of::<Entry>());
const _: () = assert!(offset_of!(Pair, 0) == offset_of!(Entry, key));

/// The first `limit` entries from this key on, in the order of their keys; returns how many there were. Each
/// node is read as it is at some moment; there is no snapshot of several.
///
/// # Safety
/// There is room for `limit` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn elidex_congee_scan(
    tree: &Tree,
    visit: &mut Visit,
    from: u64,
    limit: usize,
    entries: *mut Entry,
) -> usize {
    if limit == 0 {
        return 0;
    }
    let pairs = unsafe { slice::from_raw_parts_mut(entries.cast::<Pair>(), limit) };
    let guard = visit.guard();
    let found = tree.range(&(from as usize), &usize::MAX, pairs, guard);
    if found == limit {
        return found;
    }
    // The range ends before its end: the largest key is asked for by itself.
    match tree.get(&usize::MAX, guard) {
        Some(value) => {
            pairs[found] = (usize::MAX, value);
            found + 1
        }
        None => found,
    }
}
