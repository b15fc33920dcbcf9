//! The one thread that writes: it gathers what is waiting into one transaction, so that many steps share one commit.

use std::path::PathBuf;
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::failure::{Failure, of_commit, of_sql};
use crate::error::StoreError;

/// How many pieces of work may wait before their callers do.
const QUEUE_MAX: usize = 1_024;

/// How many pieces of work share one commit at most.
const BATCH_MAX: usize = 256;

/// The way to the writing thread. It ends when the last of these is dropped and the queue is done.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Order>,
    path: PathBuf,
    lock_wait_ms: u64,
}

impl Writer {
    /// Starts the thread. The receiver is told when it has ended and its connection is closed.
    pub(super) fn start(
        connection: Connection,
        path: PathBuf,
        lock_wait_ms: u64,
    ) -> Result<(Self, oneshot::Receiver<()>), StoreError> {
        let (queue, orders) = mpsc::channel(QUEUE_MAX);
        let (done, ended) = oneshot::channel();
        let thread = WriterThread { connection, path: path.clone(), lock_wait_ms };
        thread::Builder::new()
            .name("gesta-store".to_owned())
            .spawn(move || {
                thread.work(orders);
                let _ = done.send(());
            })
            .map_err(|cause| StoreError::Io { path: path.clone(), reason: cause.to_string() })?;
        Ok((Self { queue, path, lock_wait_ms }, ended))
    }

    /// Has a piece of work done in a transaction and waits until that is committed. It may be done more than once
    /// before it is kept once, so it must not take anything out of what it owns.
    pub(super) async fn write<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let (path, lock_wait_ms) = (self.path.clone(), self.lock_wait_ms);
        let task = Task { work, result: None, reply, path, lock_wait_ms };
        if self.queue.send(Order::Write(Box::new(task))).await.is_err() {
            return Err(StoreError::Closed { path: self.path.clone() });
        }
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::CommitUnknown { path: self.path.clone(), reason: "the writing thread ended".to_owned() })
        })
    }

    /// Has what was erased wiped from the write-ahead log too, as far as no reader holds on to it.
    pub(super) async fn forget(&self) {
        let (reply, done) = oneshot::channel();
        if self.queue.send(Order::Forget(reply)).await.is_ok() {
            // An error means that the thread has ended, and with it the log.
            let _ = done.await;
        }
    }
}

/// What the thread is asked.
enum Order {
    Write(Box<dyn Unit>),
    /// Nothing erased is to remain in the write-ahead log.
    Forget(oneshot::Sender<()>),
}

/// One caller's piece of work and where its result goes.
trait Unit: Send {
    /// Does the work; whether it succeeded.
    fn perform(&mut self, connection: &Connection) -> bool;
    /// Tells the caller, whose work was committed or not.
    fn settle(self: Box<Self>, commit: Result<(), StoreError>);
}

struct Task<T, W> {
    work: W,
    result: Option<Result<T, Failure>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    path: PathBuf,
    lock_wait_ms: u64,
}

impl<T, W> Unit for Task<T, W>
where
    T: Send,
    W: FnMut(&Connection) -> Result<T, Failure> + Send,
{
    fn perform(&mut self, connection: &Connection) -> bool {
        let result = (self.work)(connection);
        let good = result.is_ok();
        self.result = Some(result);
        good
    }

    fn settle(self: Box<Self>, commit: Result<(), StoreError>) {
        let answer = match (self.result, commit) {
            (Some(Err(failure)), _) => Err(failure.explain(&self.path, self.lock_wait_ms)),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(StoreError::Closed { path: self.path }),
            (Some(Ok(_)) | None, Err(error)) => Err(error),
        };
        // A caller that went away does not want to know.
        let _ = self.reply.send(answer);
    }
}

struct WriterThread {
    connection: Connection,
    path: PathBuf,
    lock_wait_ms: u64,
}

impl WriterThread {
    fn work(self, mut orders: mpsc::Receiver<Order>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut forget = Vec::new();
        while let Some(first) = orders.blocking_recv() {
            let mut next = Some(first);
            while let Some(order) = next {
                match order {
                    Order::Write(unit) => batch.push(unit),
                    Order::Forget(reply) => forget.push(reply),
                }
                next = if batch.len() < BATCH_MAX { orders.try_recv().ok() } else { None };
            }
            if !batch.is_empty() {
                self.commit(&mut batch);
            }
            if !forget.is_empty() {
                // Best effort: where a reader is in the way, the next checkpoint does it.
                let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
                for reply in forget.drain(..) {
                    let _ = reply.send(());
                }
            }
        }
    }

    /// One transaction for all. One that fails after it has written spoils it: then each gets a transaction of its own,
    /// so that nobody pays for another.
    fn commit(&self, batch: &mut Vec<Box<dyn Unit>>) {
        if let Some(result) = self.transaction(batch) {
            for unit in batch.drain(..) {
                unit.settle(result.clone());
            }
            return;
        }
        for mut unit in batch.drain(..) {
            let result = self.transaction(std::slice::from_mut(&mut unit));
            // Where the work failed, its own failure is what its caller is told.
            unit.settle(result.unwrap_or_else(|| Err(self.unknown())));
        }
    }

    /// The result of the commit; none where a piece of work failed half-way and all was rolled back.
    fn transaction(&self, units: &mut [Box<dyn Unit>]) -> Option<Result<(), StoreError>> {
        if let Err(cause) = self.execute("BEGIN IMMEDIATE") {
            return Some(Err(of_sql(&self.path, self.lock_wait_ms, &cause)));
        }
        for unit in units {
            let before = self.connection.total_changes();
            let good = unit.perform(&self.connection);
            let spoilt = !good && self.connection.total_changes() != before;
            if spoilt || self.connection.is_autocommit() {
                self.roll_back();
                return None;
            }
        }
        Some(self.execute("COMMIT").map_err(|cause| {
            self.roll_back();
            of_commit(&self.path, self.lock_wait_ms, &cause)
        }))
    }

    fn unknown(&self) -> StoreError {
        StoreError::CommitUnknown { path: self.path.clone(), reason: "the transaction ended by itself".to_owned() }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// SQLite rolls back by itself after some errors; then there is nothing left to do.
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            let _ = self.execute("ROLLBACK");
        }
    }
}
