// Joins the command line and the daemon into few files, dist/bin. Start-up is most of the time of a
// command, and most of that is finding and compiling one module after the other; the loader of CommonJS
// takes 4 ms less than that of ES modules. A command's file is still loaded only when it is used; for the
// daemon see bundle-daemon.mjs.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ascii, daemonBundle, knownVersion } from './bundle-daemon.mjs'
import { licensesOf } from './bundle-licenses.mjs'

/** These are ES modules that a command loads when it needs them; `open` brings a program of its own too. */
const external = ['open', 'yocto-spinner']

/**
 * Commander can run a subcommand as a program of its own. Ours has none of these, and what it takes to
 * start a process is not loaded for nothing.
 */
const withoutChildProcess = {
  name: 'commander-without-child-process',
  resolveId: (source, importer) =>
    /^(node:)?child_process$/.test(source) && /[\\/]commander[\\/]/.test(importer ?? '')
      ? '\0no-child-process'
      : undefined,
  load: (id) => (id === '\0no-child-process' ? 'module.exports = {}' : undefined),
}

/** True where the files say what they were made of. */
export const withSourceMaps = process.env.DOORWARD_SOURCE_MAPS === '1'

/** Bundles dist/cli and dist/daemon of the repository at `root` into dist/bin. */
export const bundle = async (root) => {
  const outFolder = join(root, 'dist', 'bin')
  rmSync(outFolder, { recursive: true, force: true })
  const { rolldown } = await import('rolldown')
  // For `npm run coverage`, which has to know what of ours ran in them.
  const sourcemap = withSourceMaps
  const chunks = []
  for (const { input, output } of [commandsBundle(root), daemonBundle(root)]) {
    const build = await rolldown(input)
    chunks.push(...(await build.write({ dir: outFolder, ...output, sourcemap })).output)
    await build.close()
  }
  // Coverage is told by the place of each character, which the loader changes.
  if (!withSourceMaps) {
    const loader = await loaderOf(root, rolldown)
    for (const name of compiled) putBehind(loader, join(outFolder, name))
  }
  writeFileSync(join(outFolder, 'LICENSES.txt'), licensesOf(chunks))
}

/** What is large and runs at the start of the daemon, or of `oauth token`. */
const compiled = [
  'doorward-daemon',
  'doorward-daemon-mail',
  'doorward-daemon-packages',
  'doorward-daemon-yaml',
  'doorward-daemon-zod',
]

/** Makes `NAME.code.cjs` of a file, and puts the program that loads it in its place. */
const putBehind = (loader, path) => {
  const [, program = '', code] = /^(#!.*\n)?([^]*)$/.exec(readFileSync(`${path}.cjs`, 'latin1'))
  // Node would warn of it there.
  if (/\bimport\(/.test(code)) throw new Error(`${path}.cjs has an import()`)
  writeFileSync(`${path}.code.cjs`, code, 'latin1')
  writeFileSync(`${path}.cjs`, program + loader)
}

/** The program that `shared/load-compiled.ts` is, whole: one more file to load would be half of what it saves. */
const loaderOf = async (root, rolldown) => {
  const build = await rolldown({
    cwd: root,
    input: join(root, 'dist', 'shared', 'load-compiled.js'),
    platform: 'node',
  })
  const { output } = await build.generate({ format: 'cjs', strict: true, comments: false })
  await build.close()
  return `${output[0].code}loadCompiled(module, require);\n`
}

const commandsBundle = (root) => {
  const cli = (name) => join(root, 'dist', 'cli', `${name}.js`)
  return {
    input: {
      cwd: root,
      input: { doorward: cli('main') },
      platform: 'node',
      external,
      preserveEntrySignatures: false,
      plugins: [withoutChildProcess, knownVersion, ascii],
    },
    output: {
      format: 'cjs',
      // As ES modules are: a write to what cannot be written throws.
      strict: true,
      comments: false,
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name].cjs',
      codeSplitting: {
        includeDependenciesRecursively: false,
        groups: [{ name: fileFor(cli), debugName: 'files of commands', minSize: 0 }],
      },
    },
  }
}

/**
 * Which file a module goes into: what every command needs is one, one what a command that asks the daemon needs,
 * and one what it takes to ask for more than a token. The first two are all that `oauth token` loads besides the
 * program.
 */
const fileFor = (cli) => {
  let wanted
  return (id, context) => {
    wanted ??= (() => {
      const always = reachedFrom([cli('main')], context)
      const asking = reachedFrom([cli('commands/oauth/token')], context)
      const quick = reachedFrom([cli('context'), cli('quick-token')], context)
      const files = new Map([...asking].map((name) => [name, 'ask-daemon']))
      for (const name of quick) files.set(name, 'quick-token')
      for (const name of always) files.set(name, name === cli('main') ? null : 'always')
      return files
    })()
    return wanted.get(id) ?? null
  }
}

/** The modules that are loaded with these; not those that are loaded when needed. */
const reachedFrom = (names, context, found = new Set()) => {
  for (const name of names) {
    if (found.has(name)) continue
    found.add(name)
    reachedFrom(context.getModuleInfo(name)?.importedIds ?? [], context, found)
  }
  return found
}
