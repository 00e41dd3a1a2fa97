// The pages of administrators, as one chunk.
export { default as Settings } from './Settings.svelte';
export { default as Users } from './Users.svelte';
