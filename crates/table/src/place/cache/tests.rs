#![expect(clippy::single_range_in_vec_init, reason = "reads are ranges")]

use super::*;
use crate::place::remote::Remote;
use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::{
    CopyOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStoreExt, PutMultipartOptions,
    PutOptions, PutPayload, PutResult,
};
use std::fs;
use std::sync::atomic::AtomicBool;
use tokio::sync::Notify;
use tributary_types::Portion;

/// A store in memory that records the ranges that are read, and may hold them back or fail.
#[derive(Debug, Default)]
struct Watched {
    objects: InMemory,
    reads: Mutex<Vec<Range<u64>>>,
    is_held: AtomicBool,
    opened: Notify,
    failures: AtomicU64,
}

impl Watched {
    fn reads(&self) -> Vec<Range<u64>> {
        let mut reads = std::mem::take(&mut *self.reads.lock());
        reads.sort_unstable_by_key(|range| range.start);
        reads
    }

    fn open(&self) {
        self.is_held.store(false, Ordering::SeqCst);
        self.opened.notify_waiters();
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

#[async_trait]
impl ObjectStore for Watched {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.objects.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if let Some(GetRange::Bounded(range)) = &options.range {
            self.reads.lock().push(range.clone());
        }
        let opened = self.opened.notified();
        if self.is_held.load(Ordering::SeqCst) {
            opened.await;
        }
        let is_failing = |left: u64| left.checked_sub(1);
        if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_failing).is_ok() {
            return Err(Error::Generic { store: "Watched", source: "the test said so".into() });
        }
        self.objects.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

const MIB: u64 = BLOCK_BYTES;
const NAME: &str = "a/tables/demo/t-1/part-1.parquet";

struct Bench {
    dir: tempfile::TempDir,
    store: Arc<Watched>,
    bytes: Vec<u8>,
}

impl Bench {
    /// A store with one data file of this many bytes.
    async fn new(bytes: u64) -> Self {
        let bytes: Vec<u8> = (0..bytes).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect();
        let store = Arc::new(Watched::default());
        store.objects.put(&Path::from(NAME), bytes.clone().into()).await.unwrap();
        Self { dir: tempfile::tempdir().unwrap(), store, bytes }
    }

    fn cache(&self, limit: Portion) -> Arc<ReadCache> {
        let directory = self.dir.path().join("cache");
        let options = ReadCacheOptions { directory, limit, available_bytes: 100 * MIB };
        Arc::new(ReadCache::open(&options).unwrap())
    }

    async fn read(&self, cache: &Arc<ReadCache>, range: Range<u64>) -> Result<()> {
        let store = Arc::clone(&self.store) as Arc<dyn ObjectStore>;
        let remote = Remote::new(store, Some(Arc::clone(cache)));
        let bytes = remote.get_range(&Path::from(NAME), range.clone()).await?;
        assert_eq!(bytes, self.bytes[range.start as usize..range.end as usize]);
        Ok(())
    }

    /// The files of blocks.
    fn files(&self) -> Vec<PathBuf> {
        let parts = fs::read_dir(self.dir.path().join("cache")).unwrap();
        parts
            .flat_map(|part| fs::read_dir(part.unwrap().path()).unwrap())
            .map(|file| file.unwrap().path())
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_read_is_read_from_the_disk_after_a_restart_too() {
    let bench = Bench::new(10 * MIB + 5).await;
    let cache = bench.cache(Portion::Percent(50));
    bench.read(&cache, 10..20).await.unwrap();
    assert_eq!(bench.store.reads(), [0..MIB]);
    cache.settle().await;
    bench.read(&cache, 0..MIB).await.unwrap();
    bench.read(&cache, MIB - 1..9 * MIB + 7).await.unwrap();
    assert_eq!(bench.store.reads(), [MIB..8 * MIB, 8 * MIB..10 * MIB]);
    cache.settle().await;
    let facts = cache.facts();
    assert_eq!((facts.hits, facts.misses, facts.blocks, facts.damaged), (2, 10, 10, 0));
    assert_eq!((facts.miss_bytes, facts.hit_bytes, facts.limit_bytes), (10 * MIB, 2 * MIB, 50 * MIB));
    let again = bench.cache(Portion::Percent(50));
    bench.read(&again, 0..10 * MIB).await.unwrap();
    assert!(bench.store.reads().is_empty());
    bench.read(&again, 10 * MIB..10 * MIB + 5).await.unwrap();
    assert_eq!(bench.store.reads(), [10 * MIB..11 * MIB], "the file's last block");
    again.settle().await;
    bench.read(&again, 0..10 * MIB + 5).await.unwrap();
    let facts = again.facts();
    assert_eq!((facts.hits, facts.misses, facts.blocks), (21, 1, 11));
    assert!(facts.limit_bytes > 55 * MIB, "its own bytes are free for it, too: {facts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_lack_the_same_block_have_it_read_once() {
    let bench = Bench::new(3 * MIB).await;
    let cache = bench.cache(Portion::Percent(50));
    bench.store.is_held.store(true, Ordering::SeqCst);
    let all = futures::future::join_all((0..20).map(|at| bench.read(&cache, at..at + 2 * MIB)));
    // A reader that leaves takes nobody's block with it.
    let left =
        tokio::time::timeout(std::time::Duration::from_millis(1), bench.read(&cache, 0..3 * MIB)).await;
    assert!(left.is_err());
    let ((), read) = tokio::join!(
        async {
            while cache.facts().hits < 20 {
                tokio::task::yield_now().await;
            }
            bench.store.open();
        },
        all
    );
    read.into_iter().for_each(|read| read.unwrap());
    assert_eq!(bench.store.reads(), [0..3 * MIB]);
    cache.settle().await;
    assert_eq!((cache.facts().misses, cache.facts().blocks), (3, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_block_is_read_from_the_store_again() {
    let bench = Bench::new(2 * MIB).await;
    let cache = bench.cache(Portion::Percent(50));
    bench.read(&cache, 0..2 * MIB).await.unwrap();
    cache.settle().await;
    bench.store.reads();
    let files = bench.files();
    assert_eq!(files.len(), 2);
    let mut bytes = fs::read(&files[0]).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x40;
    fs::write(&files[0], bytes).unwrap();
    fs::remove_file(&files[1]).unwrap();
    bench.read(&cache, 0..2 * MIB).await.unwrap();
    assert_eq!(bench.store.reads(), [0..2 * MIB]);
    cache.settle().await;
    let facts = cache.facts();
    assert_eq!((facts.damaged, facts.misses, facts.blocks), (1, 4, 2), "one was only gone");
    bench.read(&cache, 0..2 * MIB).await.unwrap();
    assert!(bench.store.reads().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_take_no_more_than_the_limit_and_go_with_their_file() {
    let bench = Bench::new(20 * MIB).await;
    let cache = bench.cache(Portion::Bytes(4 * MIB + 4096));
    for _ in 0..2 {
        for block in 0..20 {
            bench.read(&cache, block * MIB..(block + 1) * MIB).await.unwrap();
            cache.settle().await;
            let bytes: u64 = bench.files().iter().map(|file| fs::metadata(file).unwrap().len()).sum();
            assert_eq!(bytes, cache.facts().bytes);
            assert!(bytes <= 4 * MIB + 4096, "{bytes}");
        }
    }
    let facts = cache.facts();
    assert_eq!((facts.blocks, facts.evictions, facts.not_kept), (4, 36, 0));
    let smaller = bench.cache(Portion::Bytes(2 * MIB + 4096));
    assert_eq!((smaller.facts().blocks, bench.files().len()), (2, 2), "the limit was lowered");
    let store = Arc::clone(&bench.store) as Arc<dyn ObjectStore>;
    Remote::new(store, Some(Arc::clone(&smaller))).delete(&Path::from(NAME)).await.unwrap();
    assert_eq!((smaller.facts().bytes, bench.files().len()), (0, 0));
    let gone = bench.read(&smaller, 0..5).await.unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_store_is_every_waiting_readers_and_nothing_is_kept_of_it() {
    let bench = Bench::new(MIB).await;
    let cache = bench.cache(Portion::Percent(50));
    bench.store.is_held.store(true, Ordering::SeqCst);
    bench.store.failures.store(1, Ordering::SeqCst);
    let (one, two, ()) = tokio::join!(bench.read(&cache, 0..5), bench.read(&cache, 3..9), async {
        while cache.facts().hits < 1 {
            tokio::task::yield_now().await;
        }
        bench.store.open();
    });
    for failed in [one, two] {
        assert!(failed.unwrap_err().to_string().contains("the test said so"));
    }
    cache.settle().await;
    bench.read(&cache, 0..5).await.unwrap();
    assert_eq!(bench.store.reads().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_takes_nothing_costs_the_cache_and_no_answer() {
    let bench = Bench::new(2 * MIB).await;
    let cache = bench.cache(Portion::Percent(50));
    fs::remove_dir_all(bench.dir.path().join("cache")).unwrap();
    for _ in 0..2 {
        bench.read(&cache, 0..2 * MIB).await.unwrap();
        cache.settle().await;
    }
    let facts = cache.facts();
    assert_eq!((facts.blocks, facts.not_kept, facts.misses), (0, 4, 4));
    cache.failed(&io::Error::from(io::ErrorKind::StorageFull));
    assert_eq!(cache.facts().not_kept, 5);
}

#[test]
fn ranges_become_requests_of_bounded_size() {
    assert_eq!(requests(&[0..1, 3 * MIB - 1..3 * MIB + 1]), [0..1, 2..4]);
    assert_eq!(requests(&[5 * MIB..6 * MIB, MIB..5 * MIB, 0..MIB + 1]), [0..6]);
    assert_eq!(requests(&[2 * MIB..20 * MIB]), [2..10, 10..18, 18..20]);
    assert!(requests(&[]).is_empty());
}
