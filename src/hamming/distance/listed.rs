//! Distances of one fingerprint to a list of others, which lie row by row.
//!
//! What a table names lies anywhere: a row that is whole takes one access to memory, where planes would take one
//! for each word. Memory decides how long that takes, so counting bits word by word is as good as any vector.

use crate::system::memory::push;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::Avx2;

/// For each of the listed places within the radius its number in the list, and its distance; appended to `near`.
pub fn near_listed<const W: usize>(
    query: &[u64; W],
    rows: &[[u64; W]],
    places: &[u32],
    radius: u32,
    near: &mut Vec<[u32; 2]>,
) {
    #[cfg(target_arch = "x86_64")]
    if Avx2::in_force().is_some() {
        // SAFETY: whatever has AVX2 counts bits by one instruction.
        return unsafe { near_listed_popcnt(query, rows, places, radius, near) };
    }
    near_listed_plain(query, rows, places, radius, near);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn near_listed_popcnt<const W: usize>(
    query: &[u64; W],
    rows: &[[u64; W]],
    places: &[u32],
    radius: u32,
    near: &mut Vec<[u32; 2]>,
) {
    near_listed_plain(query, rows, places, radius, near); // inlined here, so compiled for it
}

#[inline(always)]
fn near_listed_plain<const W: usize>(
    query: &[u64; W],
    rows: &[[u64; W]],
    places: &[u32],
    radius: u32,
    near: &mut Vec<[u32; 2]>,
) {
    for (number, &place) in (0..).zip(places) {
        let row = &rows[place as usize];
        let mut far = 0u32;
        for word in 0..W {
            // At most 65,536 bits.
            far = far.wrapping_add((query[word] ^ row[word]).count_ones());
        }
        if far <= radius {
            push(near, [number, far]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::simd::tests::at_every_level;

    #[test]
    fn what_is_near_is_told_with_its_number_in_the_list_and_its_distance() {
        let rows = [[0, 0], [1, u64::MAX], [u64::MAX, 1], [7, 0]];
        at_every_level(|name| {
            let mut near = Vec::new();
            near_listed(&[0, 0], &rows, &[3, 1, 0, 3], 3, &mut near);
            assert_eq!(near, [[0, 3], [2, 0], [3, 3]], "{name}");
            near.clear();
            near_listed(&[0, 0], &rows, &[1, 2], 65, &mut near);
            assert_eq!(near, [[0, 65], [1, 65]], "{name}");
        });
    }
}
