// Joins the daemon into few files, dist/bin/doorward-daemon*.cjs: to find and compile some three hundred
// modules one after the other is most of the time of its start. All of it is loaded at the start, and
// nothing from the disk later, so that an update can put other files there under a daemon that runs.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Files of their own: what it takes to compile one is memory that the process keeps, once and not in sum. */
const parts = [
  ['zod', ['zod']],
  ['yaml', ['yaml']],
  ['mail', ['nodemailer']],
]

const inPackage = (id, name) => id.replaceAll('\\', '/').includes(`/node_modules/${name}/`)
const inPackages = (id) => /[\\/]node_modules[\\/]/.test(id) || id.startsWith('\0metrics')

const partOf = (id) =>
  parts.find(([, names]) => names.some((name) => inPackage(id, name)))?.[0] ??
  (inPackages(id) ? 'packages' : undefined)

/** Other forms of a module of a package, which do the same for us with less. */
const lighter = {
  name: 'lighter-modules',
  resolveId: (source, importer = '') => {
    // It only asks whether a request is one of HTTP/2, which we do not speak.
    if (source === 'node:http2' && inPackage(importer, 'better-sse')) return '\0no-http2'
    // Without its own collectors, its gateway client and OpenTelemetry.
    if (source === 'prom-client' && !inPackages(importer)) return '\0metrics-of-prom-client'
    return undefined
  },
  load: (id) => {
    if (id === '\0no-http2')
      return 'export class Http2ServerRequest {}\nexport class Http2ServerResponse {}\n'
    if (id === '\0metrics-of-prom-client')
      return ['Registry', 'Counter', 'Gauge', 'Histogram']
        .map(
          (name) => `export { default as ${name} } from 'prom-client/lib/${name.toLowerCase()}.js'`,
        )
        .join('\n')
    return /[\\/]mime-db[\\/]db\.json$/.test(id)
      ? { code: mediaTypes(readFileSync(id, 'utf8')), moduleType: 'js' }
      : undefined
  },
}

/** All that mime-types reads of the list, as text: JSON is read several times faster than program. */
const mediaTypes = (json) => {
  const known = Object.entries(JSON.parse(json))
    .filter(([, { extensions, charset }]) => extensions ?? charset)
    .map(([name, { source, extensions, charset }]) => [name, { source, extensions, charset }])
  return `module.exports = JSON.parse(${JSON.stringify(JSON.stringify(Object.fromEntries(known)))})`
}

/**
 * Makes each character one of ASCII: V8 keeps and scans such a file in half the memory. Without comments,
 * others stand in strings and patterns only, where their code means the same.
 */
export const ascii = {
  name: 'ascii',
  generateBundle: (_, files) => {
    for (const file of Object.values(files))
      if (file.type === 'chunk') file.code = file.code.replaceAll(/[\u0080-\uffff]/g, codeOf)
  },
}

const codeOf = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** The version is that of the files, not of a package.json that may be another's by now, and is not read for it. */
export const knownVersion = {
  name: 'known-version',
  transform: (code, id) => {
    if (!/[\\/]dist[\\/]shared[\\/]version\.js$/.test(id)) return undefined
    const { version } = JSON.parse(readFileSync(join(id, '..', '..', '..', 'package.json'), 'utf8'))
    const known = code.replace(
      /^export const version = .*;$/m,
      `export const version = '${version}'`,
    )
    if (known === code) throw new Error('shared/version.ts names no version that is known here')
    return known
  },
}

/** What rolldown has to know, and to write. */
export const daemonBundle = (root) => ({
  input: {
    cwd: root,
    input: {
      'doorward-daemon': join(root, 'dist', 'daemon', 'main.js'),
      'doorward-daemon-under-launchd': join(root, 'dist', 'daemon', 'launchd-guard.js'),
    },
    platform: 'node',
    preserveEntrySignatures: false,
    plugins: [lighter, knownVersion, ascii],
    checks: { eval: false },
  },
  output: {
    format: 'cjs',
    // As ES modules are: a write to what cannot be written throws.
    strict: true,
    comments: false,
    entryFileNames: '[name].cjs',
    chunkFileNames: 'doorward-daemon-[name].cjs',
    codeSplitting: {
      groups: [{ name: (id) => partOf(id) ?? null, debugName: 'parts of the daemon', minSize: 0 }],
    },
  },
})
