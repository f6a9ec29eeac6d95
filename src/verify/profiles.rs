#![forbid(unsafe_code)]
//! Profiles at hand; those that were not wanted for longest go when they take too much memory.

use crate::system::memory::{more_room, push, resize};
use crate::verify::profile::Profile;

pub struct Profiles {
    /// By the place of the text.
    held: Vec<Option<Box<Profile>>>,
    /// When each was last wanted.
    used: Vec<u32>,
    /// The places of those at hand.
    places: Vec<u32>,
    /// How often profiles were wanted.
    now: u32,
    bytes: usize,
    limit: usize,
    /// Of texts that have none.
    nothing: Profile,
}

impl Profiles {
    /// At most about *limit* bytes of them.
    pub fn new(limit: usize) -> Profiles {
        let nothing = Profile::default();
        Profiles { held: Vec::new(), used: Vec::new(), places: Vec::new(), now: 0, bytes: 0, limit, nothing }
    }

    /// Have room for *count* texts.
    pub fn grow(&mut self, count: usize) {
        let more = count.saturating_sub(self.held.len());
        more_room(&mut self.held, more);
        self.held.resize_with(count.max(self.held.len()), || None);
        resize(&mut self.used, self.held.len(), 0);
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// A profile that is at hand.
    pub fn get(&self, place: Option<usize>) -> &Profile {
        place.and_then(|place| self.held[place].as_deref()).unwrap_or(&self.nothing)
    }

    /// What is wanted from here on counts as newly wanted.
    pub fn begin(&mut self) {
        self.now += 1;
    }

    /// Mark a profile as wanted now; returns whether it was not since `begin`.
    pub fn want(&mut self, place: usize) -> bool {
        std::mem::replace(&mut self.used[place], self.now) != self.now
    }

    /// Those of *needed* that are not at hand, in ascending order; the others stay.
    pub fn missing(&mut self, needed: impl Iterator<Item = usize>) -> Vec<u32> {
        self.begin();
        let mut missing = Vec::new();
        for place in needed {
            if self.want(place) && self.held[place].is_none() {
                push(&mut missing, place as u32);
            }
        }
        missing.sort_unstable();
        if self.bytes > self.limit / 4 * 3 {
            self.forget();
        }
        missing
    }

    pub fn insert(&mut self, place: u32, profile: Box<Profile>) {
        push(&mut self.places, place);
        self.bytes += profile.bytes();
        self.held[place as usize] = Some(profile);
    }

    /// Let those of *places* go: their texts are others now, or none.
    pub fn remove(&mut self, places: impl Iterator<Item = usize>) {
        let mut gone = false;
        for place in places {
            if let Some(profile) = self.held[place].take() {
                self.bytes -= profile.bytes();
                gone = true;
            }
        }
        if gone {
            self.places.retain(|place| self.held[*place as usize].is_some());
        }
    }

    fn forget(&mut self) {
        let size = |place: &u32| self.held[*place as usize].as_ref().map_or(0, |profile| profile.bytes());
        let mut ages: Vec<(u32, usize)> =
            self.places.iter().map(|place| (self.used[*place as usize], size(place))).collect();
        ages.sort_unstable_by(|one, other| other.cmp(one));
        let mut kept = 0;
        let oldest = ages.iter().find_map(|(used, bytes)| {
            kept += bytes;
            (kept > self.limit / 2).then_some(*used)
        });
        let oldest = oldest.unwrap_or(0);
        let mut old = Vec::new();
        self.places.retain(|place| {
            let used = self.used[*place as usize];
            let stays = used > oldest || used == self.now;
            if !stays && let Some(profile) = self.held[*place as usize].take() {
                self.bytes -= profile.bytes();
                old.push(profile);
            }
            stays
        });
        // To free many small pieces takes a while, for which nobody needs to wait. Where the system gives no
        // thread, they are freed with the closure.
        drop(std::thread::Builder::new().spawn(move || drop(old)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(profiles: &mut Profiles, places: &[usize]) -> Vec<u32> {
        let missing = profiles.missing(places.iter().copied());
        for place in &missing {
            profiles.insert(*place, Box::new(Profile { tokens: vec![0; 100], ..Profile::default() }));
        }
        missing
    }

    #[test]
    fn a_profile_is_made_once_and_again_only_after_it_was_forgotten() {
        let size = Profile { tokens: vec![0; 100], ..Profile::default() }.bytes();
        let mut profiles = Profiles::new(size * 4);
        profiles.grow(9);
        assert_eq!(made(&mut profiles, &[3, 1, 3]), [1, 3]);
        assert_eq!(made(&mut profiles, &[2, 3]), [2]);
        assert_eq!(made(&mut profiles, &[4]), [4]);
        // Now they take too much: the ones that were wanted last stay, and what is needed.
        assert_eq!(made(&mut profiles, &[1, 5]), [5]);
        assert_eq!(made(&mut profiles, &[2, 3]), [2, 3]);
        assert!(profiles.bytes <= size * 5);
        profiles.remove([2, 8].into_iter());
        assert_eq!(made(&mut profiles, &[2]), [2]);
    }
}
