//! Threads for what waits for the kernel.
//!
//! The kernel carries out a change while it is sent, and most changes wait for one lock that all network namespaces of a
//! machine share. When many pods come and go at once that lock is taken most of the time, so whoever asks on the thread
//! that also does everything else stops everything else.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::kernel::Kernel;

type Job = Box<dyn FnOnce(&Runtime) + Send>;

/// Threads that talk with the kernel in our own network namespace. They end with the last copy.
#[derive(Debug, Clone)]
pub struct Hands {
    jobs: mpsc::Sender<Job>,
}

impl Hands {
    /// Starts this many.
    pub fn new(count: usize) -> Result<Self, Fault> {
        let (jobs, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..count {
            let runtime = Builder::new_current_thread().enable_all().build().map_err(Fault::Socket)?;
            let waiting = Arc::clone(&waiting);
            let thread = thread::Builder::new().name("hands".to_owned());
            thread.spawn(move || work(&runtime, &waiting)).map_err(Fault::Socket)?;
        }
        Ok(Self { jobs })
    }

    /// Lets one of them do something, in the order it was asked for. What was begun is finished, even if nobody waits
    /// for it any more.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl AsyncFnOnce(Kernel) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let (sender, answer) = oneshot::channel();
        let job: Job = Box::new(move |runtime| {
            let result = runtime.block_on(async { job(Kernel::open()?).await });
            let _ = sender.send(result);
        });
        let gone = || Fault::Socket(io::Error::other("the thread that talks with the kernel has ended"));
        self.jobs.send(job).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn work(runtime: &Runtime, waiting: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        job(runtime);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn work_is_done_elsewhere_and_side_by_side() {
        let hands = Hands::new(2).unwrap();
        let here = thread::current().id();
        let (sender, receiver) = mpsc::channel();
        let waits = hands.run(async move |_| {
            // Only the other one can end this.
            receiver.recv_timeout(Duration::from_secs(20)).map_err(|_| Fault::NoRuntime)?;
            Ok(thread::current().id())
        });
        let sends = hands.run(async move |kernel| {
            sender.send(()).map_err(|_| Fault::NoRuntime)?;
            kernel.links().await
        });
        let (waited, links) = tokio::join!(waits, sends);
        assert_ne!(waited.unwrap(), here);
        assert!(links.unwrap().contains_key("lo"));
    }
}
