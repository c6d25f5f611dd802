// Joins the command line into few files, dist/bin: what people run as `doorward`. Start-up is most of the
// time of a command, and most of that is finding and compiling one module after the other; the loader of
// CommonJS takes 4 ms less than that of ES modules. A command's file is still loaded only when it is used.
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

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

/** Bundles dist/cli of the repository at `root` into dist/bin/doorward.cjs and its parts. */
export const bundle = async (root) => {
  const outFolder = join(root, 'dist', 'bin')
  const cli = (name) => join(root, 'dist', 'cli', `${name}.js`)
  rmSync(outFolder, { recursive: true, force: true })
  const { rolldown } = await import('rolldown')
  const build = await rolldown({
    cwd: root,
    input: { doorward: cli('main') },
    platform: 'node',
    external,
    preserveEntrySignatures: false,
    plugins: [withoutChildProcess],
  })
  const { output } = await build.write({
    dir: outFolder,
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ name: askingOnly(cli), debugName: 'ask-daemon', minSize: 0 }],
    },
  })
  await build.close()
  writeFileSync(join(outFolder, 'LICENSES.txt'), licensesOf(output))
}

/** Puts what every question to the daemon needs into one file: all that `oauth token` loads. */
const askingOnly = (cli) => {
  let wanted
  return (id, context) => {
    wanted ??= (() => {
      const inMain = reachedFrom([cli('main')], context)
      const asking = reachedFrom([cli('context'), cli('oauth-token')], context)
      return new Set([...asking].filter((name) => !inMain.has(name)))
    })()
    return wanted.has(id) ? 'ask-daemon' : null
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

/** The licences of the packages that are part of the bundle. */
const licensesOf = (output) => {
  const ids = output.flatMap(({ moduleIds = [] }) => moduleIds)
  const folders = new Set(ids.map(packageOf).filter((folder) => folder !== undefined))
  const packages = [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    )
    const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.\w+)?$/i.test(entry))
    if (!file) throw new Error(`${name} has no file with its licence`)
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
  })
  const texts = packages.toSorted((a, b) => a.localeCompare(b, 'en'))
  return `doorward.cjs and the files beside it contain these packages.\n\n${texts.join(`\n${'-'.repeat(72)}\n\n`)}`
}

/** The folder of the package that a module belongs to; undefined for our own. */
const packageOf = (id) => {
  if (!/[\\/]node_modules[\\/]/.test(id)) return undefined
  let folder = dirname(id)
  // Some packages hold a package.json without a name beside their files of one kind.
  while (!hasName(join(folder, 'package.json'))) folder = dirname(folder)
  return folder
}

const hasName = (file) =>
  existsSync(file) && typeof JSON.parse(readFileSync(file, 'utf8')).name === 'string'
