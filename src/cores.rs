//! Where new threads begin.
//!
//! Linux may queue a new thread behind the one that made it, where it waits for the end of a slice of time
//! though other cores are idle: on two cores eleven phases of 1.3 ms took twice their time. So whoever makes
//! a thread leaves its core to it, if it is a thread of ours. Each may run from then on where its maker might;
//! elsewhere nothing is done.

#[cfg(target_os = "linux")]
pub use linux::Cores;
#[cfg(not(target_os = "linux"))]
pub use others::Cores;

#[cfg(target_os = "linux")]
mod linux {
    const SIZE: usize = size_of::<libc::cpu_set_t>();

    /// Cores on which a thread may run.
    #[derive(Clone, Copy)]
    pub struct Set(libc::cpu_set_t);

    impl Set {
        fn empty() -> Set {
            // SAFETY: a set of cores is plain bits, and zeros are the empty one.
            Set(unsafe { std::mem::zeroed() })
        }

        /// Let this thread run on these, if the system does.
        pub fn allow(&self) {
            // SAFETY: the set is as large as is said, and is only read; 0 is this thread.
            unsafe { libc::sched_setaffinity(0, SIZE, &self.0) };
        }
    }

    /// What one thread knows of the cores while it makes others.
    pub struct Cores {
        /// Those it may use, as long as nobody changes that.
        pub all: Set,
        /// Those it has not yet made a thread on.
        free: Set,
    }

    impl Cores {
        pub fn new() -> Cores {
            let mut all = Set::empty();
            // SAFETY: the call writes at most as many bytes as the set has. Where it fails, none are free.
            unsafe { libc::sched_getaffinity(0, SIZE, &mut all.0) };
            Cores { all, free: all }
        }

        /// Stay on this core, so that a new thread begins there; false, with nothing done, where there is no other.
        pub fn stay(&mut self) -> bool {
            // SAFETY: the call takes nothing.
            let Ok(core) = usize::try_from(unsafe { libc::sched_getcpu() }) else { return false };
            let mut own = Set::empty();
            if core >= 8 * SIZE {
                return false;
            }
            // SAFETY: the sets have a bit for this core.
            unsafe {
                libc::CPU_CLR(core, &mut self.free.0);
                libc::CPU_SET(core, &mut own.0);
            }
            // SAFETY: the set is only read.
            let others = unsafe { libc::CPU_COUNT(&self.free.0) } > 0;
            if others {
                own.allow();
            }
            others
        }

        /// Go to a core that no thread was made on.
        pub fn leave(&self) {
            self.free.allow();
            self.all.allow();
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    #[derive(Clone, Copy)]
    pub struct Set;

    impl Set {
        pub fn allow(&self) {}
    }

    pub struct Cores {
        pub all: Set,
    }

    impl Cores {
        pub fn new() -> Cores {
            Cores { all: Set }
        }

        pub fn stay(&mut self) -> bool {
            false
        }

        pub fn leave(&self) {}
    }
}
