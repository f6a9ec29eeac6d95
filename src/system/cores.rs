//! Where new threads begin.
//!
//! Linux may queue a new thread on the core of the one that made it, and may let it go first: then the maker waits
//! for the end of a slice of time, up to 4 ms, though other cores are idle. So a new thread waits until its
//! maker has sent it to another core. From then on it may run where its maker may; elsewhere,
//! and under Miri, nothing is done.

#[cfg(all(target_os = "linux", not(miri)))]
pub use linux::{Cores, Thread};
#[cfg(not(all(target_os = "linux", not(miri))))]
pub use others::{Cores, Thread};

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    const SIZE: usize = size_of::<libc::cpu_set_t>();

    /// A thread, as the system knows it.
    #[derive(Clone, Copy)]
    pub struct Thread(libc::pid_t);

    impl Thread {
        /// The one that asks.
        pub fn own() -> Thread {
            // SAFETY: the call takes nothing. C libraries have a function for it only since 2019.
            Thread(unsafe { libc::syscall(libc::SYS_gettid) } as libc::pid_t)
        }
    }

    /// Cores on which a thread may run.
    #[derive(Clone, Copy)]
    pub struct Cores(libc::cpu_set_t);

    impl Cores {
        /// Those of this thread; none where the system does not say.
        pub fn own() -> Cores {
            // SAFETY: a set of cores is plain bits, and zeros are the empty one.
            let mut all = Cores(unsafe { std::mem::zeroed() });
            // SAFETY: the call writes at most as many bytes as the set has. If it fails, there are none.
            unsafe { libc::sched_getaffinity(0, SIZE, &mut all.0) };
            all
        }

        /// All but the one on which this thread is.
        fn others(&self) -> Cores {
            let mut others = *self;
            // SAFETY: the call takes nothing.
            let core = usize::try_from(unsafe { libc::sched_getcpu() });
            if let Ok(core) = core
                && core < 8 * SIZE
            {
                // SAFETY: the set has a bit for this core.
                unsafe { libc::CPU_CLR(core, &mut others.0) };
            }
            others
        }

        /// Let a thread run on another of these cores than this one, if there is another.
        pub fn send(&self, thread: Thread) {
            self.others().allow(thread);
        }

        /// Let a thread run on all of these cores.
        pub fn allow(&self, thread: Thread) {
            // SAFETY: the set is as large as stated, and is only read. The system refuses an empty one.
            unsafe { libc::sched_setaffinity(thread.0, SIZE, &self.0) };
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod others {
    #[derive(Clone, Copy)]
    pub struct Thread;

    impl Thread {
        pub fn own() -> Thread {
            Thread
        }
    }

    #[derive(Clone, Copy)]
    pub struct Cores;

    impl Cores {
        pub fn own() -> Cores {
            Cores
        }

        pub fn send(&self, _: Thread) {}

        pub fn allow(&self, _: Thread) {}
    }
}
