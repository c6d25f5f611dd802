// Joins the command line and the daemon into few files, dist/bin: finding and compiling one module after the
// other is most of the time of a short command. A command's file is still loaded only when it is used; for the
// daemon see bundle-daemon.mjs.
import { copyFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ascii, daemonBundle, knownVersion } from './bundle-daemon.mjs'
import { licensesOf } from './bundle-licenses.mjs'

/** ES modules that a command loads when it needs them; `open` also contains a program. */
const external = ['open', 'yocto-spinner']

/**
 * The daemon starts 5 % sooner so, and with 2 MB less. Lines stay, and names of functions and classes: the
 * log shows them for an unexpected error.
 */
const keepNames = { function: true, class: true }
const minify = { compress: { keepNames }, mangle: { keepNames }, codegen: false }

/** Bundles dist/cli and dist/daemon of the repository at `root` into dist/bin. */
export const bundle = async (root) => {
  const outFolder = join(root, 'dist', 'bin')
  rmSync(outFolder, { recursive: true, force: true })
  const { rolldown } = await import('rolldown')
  // Set by `npm run coverage`.
  const sourcemap = process.env.DOORWARD_SOURCE_MAPS === '1'
  const chunks = []
  for (const { input, output } of [commandsBundle(root), daemonBundle(root)]) {
    const build = await rolldown(input)
    chunks.push(...(await build.write({ dir: outFolder, ...output, minify, sourcemap })).output)
    await build.close()
  }
  // The browser's part of the page, as its package has it.
  copyFileSync(
    join(root, 'node_modules', 'idiomorph', 'dist', 'idiomorph.min.js'),
    join(outFolder, 'idiomorph.js'),
  )
  writeFileSync(
    join(outFolder, 'LICENSES.txt'),
    licensesOf([
      ...chunks,
      { moduleIds: [join(root, 'node_modules', 'idiomorph', 'package.json')] },
    ]),
  )
}

/** What nearly every command loads that asks the daemon. */
const clientModules =
  /[\\/]dist[\\/]cli[\\/](context|daemon-client[\\/]ensure|commands[\\/]oauth[\\/]token)\.js$/

const commandsBundle = (root) => ({
  input: {
    cwd: root,
    input: { doorward: join(root, 'dist', 'cli', 'main.js') },
    platform: 'node',
    external,
    preserveEntrySignatures: false,
    plugins: [knownVersion, ascii],
  },
  output: {
    format: 'cjs',
    // Strict mode, as in ES modules.
    strict: true,
    comments: false,
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    // Each with everything that it imports. Otherwise `oauth token` would load 16 files, which takes a tenth
    // of its time.
    codeSplitting: {
      groups: [
        { name: 'program', test: /[\\/]dist[\\/]cli[\\/]program\.js$/, minSize: 0 },
        { name: 'client', test: clientModules, minSize: 0 },
      ],
    },
  },
})
