//! Batches that the host makes while a device computes.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Scope;

use super::{Batches, HostBatch};

/// The batches of an epoch one after the other: made on request, or before.
#[derive(Debug)]
pub struct Ahead<'l>(Source<'l>);

#[derive(Debug)]
enum Source<'l> {
    /// Made on the thread that asks.
    InTurn {
        batches: Batches<'l>,
        /// Numbers of batches to skip before each.
        skips: std::vec::IntoIter<usize>,
    },
    /// Made by a thread of its own, at most some of them at a time.
    Queue(Receiver<HostBatch>),
}

impl<'l> Ahead<'l> {
    /// The batches at increasing `places` of `batches`, of which at most `n_ahead` are made before they are requested; 0 = each
    /// when it is. The thread that makes them ends with them, or at the first batch after this is dropped.
    pub fn new<'s>(
        mut batches: Batches<'l>,
        places: impl Iterator<Item = usize>,
        n_ahead: usize,
        scope: &'s Scope<'s, '_>,
    ) -> Self
    where
        'l: 's,
    {
        let mut next = 0;
        let skip = |place: usize| place - std::mem::replace(&mut next, place + 1);
        let skips = places.map(skip).collect::<Vec<_>>().into_iter();
        if n_ahead == 0 {
            return Self(Source::InTurn { batches, skips });
        }
        // One more is made while `n_ahead - 1` wait in the channel.
        let (send, receive) = sync_channel(n_ahead - 1);
        scope.spawn(move || {
            for skip in skips {
                let Some(batch) = batches.nth(skip) else { return };
                if send.send(batch).is_err() {
                    return;
                }
            }
        });
        Self(Source::Queue(receive))
    }
}

impl Iterator for Ahead<'_> {
    type Item = HostBatch;

    fn next(&mut self) -> Option<HostBatch> {
        match &mut self.0 {
            Source::InTurn { batches, skips } => batches.nth(skips.next()?),
            Source::Queue(receive) => receive.recv().ok(),
        }
    }
}
