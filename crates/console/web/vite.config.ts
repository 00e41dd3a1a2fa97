// The build: fixed file names without hashes, so that a rebuild of unchanged sources gives an unchanged dist.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  plugins: [svelte()],
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    sourcemap: false,
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: 'app.js',
        chunkFileNames: ({ name }) => `${name.toLowerCase()}.js`,
        assetFileNames: 'app[extname]',
        codeSplitting: {
          groups: [
            { name: 'base', test: /node_modules\/(svelte|esm-env|clsx)\/|src\/(parts\/(Act|Card|List|Panel|TableLink)|lib\/(api|format|poll|quote|route|session|theme))/, priority: 2 },
            { name: 'chart', test: /uplot|parts\/Chart/, priority: 1 },
          ],
        },
      },
    },
  },
});
