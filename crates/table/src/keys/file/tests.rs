use super::*;
use crate::keys::hash::KeyHash;
use xxhash_rust::xxh3::xxh3_128;

fn hash(key: u64) -> KeyHash {
    KeyHash::from_bits(xxh3_128(&key.to_le_bytes()) >> (u128::BITS - KEY_BITS))
}

fn keys_of(hashes: &[KeyHash], sequences: &[Sequence], path: Option<&Path>) -> FileKeys {
    let mut builder = FileKeys::builder(7);
    builder.push_all(hashes, sequences);
    builder.finish(path).unwrap()
}

fn rows_of(keys: &FileKeys, hashes: &[KeyHash]) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); hashes.len()];
    keys.find(hashes.iter().copied(), |place, found| rows[place].push(found.row)).unwrap();
    rows
}

#[test]
fn each_key_is_found_with_all_its_rows_and_others_are_not() {
    let directory = tempfile::tempdir().unwrap();
    for count in [0, 1, 2, 15, 16, 17, 31, 32, 33, 1000, 20_000] {
        let hashes: Vec<KeyHash> = (0..count).chain(0..count / 3).map(hash).collect();
        let mut wanted: Vec<(KeyHash, Vec<u32>)> = (0..count)
            .map(|key| {
                let again = (key < count / 3).then_some((count + key) as u32);
                (hash(key), [key as u32].into_iter().chain(again).collect())
            })
            .chain((count..count + 100).map(|key| (hash(key), Vec::new())))
            .collect();
        wanted.sort();
        let path = directory.path().join(count.to_string());
        for keys in [keys_of(&hashes, &[], None), keys_of(&hashes, &[], Some(&path))] {
            for step in [1, 7, 5000] {
                let some: Vec<_> = wanted.iter().step_by(step).cloned().collect();
                let (hashes, rows): (Vec<_>, Vec<_>) = some.into_iter().unzip();
                assert_eq!(rows_of(&keys, &hashes), rows, "{count} by {step}");
            }
            let mut all = Vec::new();
            keys.for_each_key(|of_key| {
                all.push((of_key[0].hash, of_key.iter().map(|keyed| keyed.row).collect()));
            })
            .unwrap();
            let mut there = wanted.clone();
            there.retain(|(_, rows)| !rows.is_empty());
            assert_eq!(all, there, "{count}");
        }
        let bytes = std::fs::metadata(&path).unwrap().len();
        assert!(
            hashes.len() < 10_000 || bytes <= hashes.len() as u64 * 12,
            "{bytes} bytes for {} rows",
            hashes.len()
        );
    }
}

#[test]
fn keys_that_differ_in_one_bit_are_different() {
    for count in [3, 40, 5000] {
        let first = hash(1).bits();
        let mut hashes: Vec<KeyHash> = (10..count + 10).map(hash).collect();
        let near: Vec<KeyHash> = (0..KEY_BITS).map(|bit| KeyHash::from_bits(first ^ 1 << bit)).collect();
        hashes.extend(&near);
        let keys = keys_of(&hashes, &[], None);
        assert_eq!(rows_of(&keys, &[hash(1)]), [Vec::<u32>::new()]);
        for (bit, hash) in near.iter().enumerate() {
            assert_eq!(
                rows_of(&keys, &[*hash]),
                [vec![(count as usize + bit) as u32]],
                "bit {bit} of {count}"
            );
        }
    }
}

#[test]
fn sequences_are_kept_whatever_their_range() {
    let hashes: Vec<KeyHash> = (0..5).map(hash).collect();
    let narrow = [Some(3), None, Some(i128::from(i64::MAX)), Some(-1), Some(0)];
    let wide = [Some(-1), None, Some(1 << 100), Some(i128::from(i64::MIN)), Some(0)];
    for sequences in [narrow, wide, [None; 5]] {
        let keys = keys_of(&hashes, &sequences, None);
        for (row, sequence) in sequences.into_iter().enumerate() {
            let mut found = Vec::new();
            keys.find([hashes[row]].into_iter(), |_, keyed| found.push(keyed)).unwrap();
            assert_eq!(found, [Keyed { hash: hashes[row], row: row as u32, sequence }]);
        }
    }
}

#[test]
fn kept_keys_are_taken_for_the_same_rows_only_and_damage_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    let hashes: Vec<KeyHash> = (0..10_000).map(hash).collect();
    assert!(FileKeys::kept(&path, 7, 10_000).is_none(), "there are none yet");
    drop(keys_of(&hashes, &[], Some(&path)));
    assert!(FileKeys::kept(&path, 8, 10_000).is_none(), "they are of another schema");
    assert!(FileKeys::kept(&path, 7, 9999).is_none(), "they are of another file");
    let kept = FileKeys::kept(&path, 7, 10_000).unwrap();
    assert_eq!(rows_of(&kept, &[hash(77)]), [vec![77]]);

    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = kept.for_each_key(|_| ()).unwrap_err().to_string();
    assert!(error.contains("has another checksum") && error.contains("keys"), "{error}");
    assert!(kept.is_lost());
    std::fs::remove_file(&path).unwrap();
    let error = kept.find([hash(1)].into_iter(), |_, _| ()).unwrap_err().to_string();
    assert!(error.contains("No such file"), "{error}");
}
