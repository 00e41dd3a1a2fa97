// The pages that show tables of the server, as one chunk.
export { default as Activity } from './Activity.svelte';
export { default as Load } from './Load.svelte';
export { default as Loads } from './Loads.svelte';
export { default as Log } from './Log.svelte';
export { default as Queue } from './Queue.svelte';
export { default as Queues } from './Queues.svelte';
export { default as Rejected } from './Rejected.svelte';
