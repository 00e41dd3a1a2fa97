use super::*;
use crate::Table;
use crate::testing::{Bench, two_columns};

async fn table() -> (Bench, Arc<Table>) {
    let bench = Bench::new();
    let table = bench.store.create(&two_columns()).await.unwrap();
    (bench, table)
}

async fn read(
    table: &Table,
    vector: &DeletionVectorDescriptor,
    rows: u64,
) -> Result<Arc<Deletes>, TableError> {
    VectorReader::new(&table.root().store, "t").read(vector.clone(), rows).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_of_one_file_are_read_back_each_by_itself() {
    let (bench, table) = table().await;
    let sets: Vec<RowSet> = vec![
        [0].into_iter().collect(),
        (0..200_000).filter(|row| row % 3 == 0).collect(),
        (5_000_000_000..5_000_000_010).collect(),
    ];
    let written = write(table.root(), sets.clone()).await.unwrap();
    let mut reader = VectorReader::new(&table.root().store, "t");
    for (deletes, rows) in written.iter().zip(&sets) {
        assert_eq!((deletes.rows(), deletes.count()), (rows, rows.len()));
        let read = reader.read(deletes.vector().clone(), u64::MAX).await.unwrap();
        assert_eq!((read.rows(), read.vector()), (rows, deletes.vector()));
    }
    let path = path_of(written[0].vector()).unwrap();
    assert!(is_vector_file(&path) && bench.dir.path().join("demo/events-7").join(&path).exists(), "{path}");
    assert!(table.root().unpublished.lock().contains(&path), "a sweep leaves it alone");
    assert_ne!(written[0], written[1]);
    assert_eq!(write(table.root(), Vec::new()).await.unwrap(), Vec::new());
}

/// The protocol's own examples of a path and of a vector in the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_of_the_protocol_are_read() {
    let vector = |storage_type, text: &str, size_in_bytes, cardinality| DeletionVectorDescriptor {
        storage_type,
        path_or_inline_dv: text.to_owned(),
        offset: None,
        size_in_bytes,
        cardinality,
    };
    let relative = vector(StorageType::UuidRelativePath, "ab^-aqEH.-t@S}K{vb[*k^", 40, 6);
    assert_eq!(
        path_of(&relative).as_deref(),
        Some("ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
    );
    let inline =
        vector(StorageType::Inline, "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 6);
    assert_eq!(path_of(&inline), None);
    let (_bench, table) = table().await;
    let read = read(&table, &inline, 100).await.unwrap();
    assert_eq!(read.rows().iter().collect::<Vec<_>>(), [3, 4, 7, 11, 18, 29]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_wrong_with_a_vector_is_named_and_never_rows_that_come_back() {
    let (bench, table) = table().await;
    let rows: RowSet = (10..20).collect();
    let written = write(table.root(), vec![rows.clone(), rows.clone()]).await.unwrap();
    let vector = written[1].vector().clone();
    let path = bench.dir.path().join("demo/events-7").join(path_of(&vector).unwrap());
    let whole = std::fs::read(&path).unwrap();
    let start = usize::try_from(vector.offset.unwrap()).unwrap();
    for place in std::iter::once(0).chain(start..whole.len()) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        std::fs::write(&path, damaged).unwrap();
        let error = read(&table, &vector, 100).await.unwrap_err();
        assert!(matches!(error, TableError::DamagedVector { .. }), "byte {place}: {error}");
    }
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = read(&table, &vector, 100).await.unwrap_err();
        assert!(matches!(error, TableError::DamagedVector { .. }), "{length} bytes: {error}");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(read(&table, &vector, 20).await.unwrap().rows(), &rows);
    let text = |error: TableError| error.to_string();
    let error = text(read(&table, &vector, 19).await.unwrap_err());
    assert!(error.contains("has row 19 of a data file that has 19 rows"), "{error}");
    let other = |change: fn(&mut DeletionVectorDescriptor)| {
        let mut vector = vector.clone();
        change(&mut vector);
        vector
    };
    let error = text(read(&table, &other(|vector| vector.cardinality = 9), 20).await.unwrap_err());
    assert!(error.contains("has 10 rows, and the log says 9"), "{error}");
    let error = text(read(&table, &other(|vector| vector.size_in_bytes = 7), 20).await.unwrap_err());
    assert!(error.contains("the log says 7"), "{error}");
    let error =
        text(read(&table, &other(|vector| vector.path_or_inline_dv.truncate(5)), 20).await.unwrap_err());
    assert!(error.contains("it is no name"), "{error}");
    let absolute = other(|vector| vector.storage_type = StorageType::AbsolutePath);
    assert!(matches!(read(&table, &absolute, 20).await.unwrap_err(), TableError::UnsupportedLog { .. }));
}
