#![forbid(unsafe_code)]
//! Pairs cut down to those that are among the nearest of one of their two.
//!
//! A family of a thousand look-alikes has half a million pairs; to judge a document it is
//! enough to look at its nearest ones. Of equally near ones the lower number comes first.

/// Which pairs are among the *most* nearest of either side; pairs are sorted by left, right.
pub fn nearest(rows: usize, left: &[u32], right: &[u32], distance: &[u16], most: u32) -> Vec<bool> {
    let width = usize::from(distance.iter().copied().max().unwrap_or(0)) + 1;
    let mut degree = vec![0u32; rows];
    for row in left.iter().chain(right) {
        degree[*row as usize] += 1;
    }
    // Only those that have more than the most are counted by distance; the others are never full.
    let crowded: Vec<u32> = (0..rows as u32).filter(|row| degree[*row as usize] > most).collect();
    let mut place = degree;
    place.fill(u32::MAX);
    for (at, row) in crowded.iter().enumerate() {
        place[*row as usize] = at as u32;
    }
    let mut counts = vec![0u32; crowded.len() * width];
    for ((one, other), apart) in left.iter().zip(right).zip(distance) {
        for row in [one, other] {
            let at = place[*row as usize];
            if at != u32::MAX {
                counts[at as usize * width + usize::from(*apart)] += 1;
            }
        }
    }
    // For each the distance at which it is full, and how many of that distance still fit.
    let mut limits: Vec<(usize, u32)> = counts
        .chunks_exact(width)
        .map(|counts| {
            let mut room = most;
            for (apart, count) in counts.iter().enumerate() {
                if *count > room {
                    return (apart, room);
                }
                room -= count;
            }
            (width, 0)
        })
        .collect();
    let mut wanted = |row: u32, apart: usize| {
        let Some((limit, room)) = limits.get_mut(place[row as usize] as usize) else { return true };
        if apart == *limit && *room > 0 {
            *room -= 1;
            return true;
        }
        apart < *limit
    };
    let pairs = left.iter().zip(right).zip(distance);
    // Both sides are asked, so that each counts what it takes.
    pairs.map(|((one, other), apart)| wanted(*one, usize::from(*apart)) | wanted(*other, usize::from(*apart))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_stays_if_it_is_near_for_one_of_the_two() {
        let (left, right, distance) = ([0, 0, 0, 1], [1, 2, 3, 2], [1, 1, 2, 5]);
        assert_eq!(nearest(4, &left, &right, &distance, 1), [true, true, true, false]);
        assert_eq!(nearest(4, &left, &right, &distance, 2), [true; 4]);
    }

    #[test]
    fn many_equal_ones_are_cut_by_number() {
        let left: Vec<u32> = (0..9).flat_map(|one| std::iter::repeat_n(one, 9 - one as usize)).collect();
        let right: Vec<u32> = (0..9u32).flat_map(|one| one + 1..10).collect();
        let kept = nearest(10, &left, &right, &vec![3; left.len()], 2);
        assert!(kept.iter().filter(|kept| **kept).count() <= 20);
        assert_eq!(kept[..3], [true, true, true]);
    }
}
