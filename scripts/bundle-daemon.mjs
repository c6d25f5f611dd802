// Joins the daemon into a few files, dist/bin/doorward-daemon*.cjs, because finding and compiling some three
// hundred modules is most of the time of its start. Everything is loaded at the start, or with the
// configuration that needs it (mail, NATS, Liquid, sockets), so that an update can replace the files under it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Separate files, because the process keeps as much memory as compiling the largest file takes: 11 MB for all
 * of `dist` in one. Each imports only those above it; what is in none is the program itself.
 */
const parts = [
  ['zod', /[\\/]node_modules[\\/]zod[\\/]/],
  ['yaml', /[\\/]node_modules[\\/]yaml[\\/]/],
  ['ws', /[\\/]node_modules[\\/]ws[\\/]/],
  ['nats', /[\\/]node_modules[\\/]@nats-io[\\/]/],
  ['packages', /[\\/]node_modules[\\/]|^\0lighter/],
  // What the guard under launchd imports.
  ['home', /[\\/]dist[\\/]shared[\\/](errors|home[\\/]home)\.js$/],
  ['shared', /[\\/]dist[\\/]shared[\\/]/],
  [
    'oauth',
    // What imports more than these is in the program itself: bots, and all of logins.
    /[\\/]dist[\\/]daemon[\\/](agents|http|oauth|util|bots(?=[\\/]bot-record\.js))[\\/](?!oauth\.js$|.*(keychain-helper|\bcheck)\.js$)/,
  ],
  [
    'events',
    /[\\/]dist[\\/]daemon[\\/](delivery|events|sessions|webhook|workspace|sender-apis(?=[\\/]roles\.js))[\\/]/,
  ],
]

const inPackage = (id, name) => id.replaceAll('\\', '/').includes(`/node_modules/${name}/`)
const inPackages = (id) => /[\\/]node_modules[\\/]|^\0lighter/.test(id)

/** Replaces modules of packages by smaller ones that are enough here. */
const lighter = {
  name: 'lighter-modules',
  resolveId: (source, importer = '') => {
    // better-sse only tests whether a request is HTTP/2, which the daemon does not support.
    if (source === 'node:http2' && inPackage(importer, 'better-sse')) return '\0lighter/http2'
    // Leaves out default collectors, the gateway client and OpenTelemetry.
    if (source === 'prom-client' && !inPackages(importer)) return '\0lighter/prom-client'
    return undefined
  },
  load: (id) => {
    if (id === '\0lighter/http2')
      return 'export class Http2ServerRequest {}\nexport class Http2ServerResponse {}\n'
    if (id === '\0lighter/prom-client')
      return ['Registry', 'Counter', 'Gauge', 'Histogram']
        .map(
          (name) => `export { default as ${name} } from 'prom-client/lib/${name.toLowerCase()}.js'`,
        )
        .join('\n')
    return /[\\/]mime-db[\\/]db\.json$/.test(id)
      ? { code: mediaTypes(readFileSync(id, 'utf8')), moduleType: 'js' }
      : undefined
  },
  transform: (code, id) => {
    // Zod would compile a parser for each schema, and most parse one value: the configuration.
    if (/[\\/]zod[\\/]v4[\\/]core[\\/]core\.js$/.test(id))
      return `${code}\nconfig({ jitless: true })\n`
    // The native helpers of ws, which nobody installs.
    return /[\\/]ws[\\/]lib[\\/](buffer-util|validation)\.js$/.test(id)
      ? code.replace(/!process\.env\.WS_NO_[A-Z0-9_]+/, 'false')
      : undefined
  },
}

/**
 * What Koa looks up for a body without a type: JSON, bytes or text. The daemon names all other types itself,
 * and reading the whole list is a twentieth of its start.
 */
const mediaTypes = (json) => {
  const all = JSON.parse(json)
  const used = ['application/json', 'application/octet-stream', 'text/html', 'text/plain']
  return `module.exports = ${JSON.stringify(Object.fromEntries(used.map((name) => [name, all[name]])))}`
}

/**
 * Escapes every character outside of ASCII, because V8 needs half the memory for an ASCII file. There are no
 * comments, so such characters occur only in strings and patterns, where the escape means the same.
 */
export const ascii = {
  name: 'ascii',
  generateBundle: (_, files) => {
    for (const file of Object.values(files))
      if (file.type === 'chunk') file.code = file.code.replaceAll(/[\u0080-\uffff]/g, codeOf)
  },
}

const codeOf = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Writes the version into the code: package.json may belong to a newer version when it is read. */
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

/** As in `cli/main.ts`, for the files that this one loads: Node 22 and 24 start in a tenth less time. */
const useCompiled =
  'process.getBuiltinModule("node:module").enableCompileCache?.(require("node:path").join(__dirname, "..", ".compiled"));'

/** The options of rolldown for the daemon. */
export const daemonBundle = (root) => ({
  input: {
    cwd: root,
    input: {
      'doorward-daemon': join(root, 'dist', 'daemon', 'main.js'),
      'doorward-daemon-under-launchd': join(root, 'dist', 'daemon', 'launchd-guard.js'),
      'doorward-daemon-keychain': join(root, 'dist/daemon/oauth/tokens/keychain-helper.js'),
    },
    platform: 'node',
    // Optional, and a native module.
    external: ['@napi-rs/keyring'],
    preserveEntrySignatures: false,
    plugins: [lighter, knownVersion, ascii],
    checks: { eval: false },
  },
  output: {
    format: 'cjs',
    // Strict mode, as in ES modules.
    strict: true,
    comments: false,
    intro: ({ name }) => (name === 'doorward-daemon' ? useCompiled : ''),
    entryFileNames: '[name].cjs',
    chunkFileNames: 'doorward-daemon-[name].cjs',
    codeSplitting: {
      // Each group without what its modules import, which belongs to a group of its own.
      includeDependenciesRecursively: false,
      groups: parts.map(([name, test]) => ({ name, test, minSize: 0 })),
    },
  },
})
