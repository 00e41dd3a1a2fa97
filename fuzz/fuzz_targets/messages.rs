#![no_main]

/// Ends the run when a few bytes take more memory than any body may.
#[global_allocator]
static ALLOCATOR: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, 1 << 30);

libfuzzer_sys::fuzz_target!(|data: &[u8]| tributary_fuzz_targets::messages(data));
