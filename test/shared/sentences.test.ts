import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parseAst } from 'rolldown/parseAst'
import { packageFolder } from '../../shared/version.ts'

/*
 * A sentence is for people: no code reads a hint, a detail, a title or a message of ours to find something
 * out. What it needs to know stands in `code` and `about`. This test searches the sources for readers.
 */

const fields = new Set(['hint', 'detail', 'localDetail', 'title', 'message'])
const readingMethods = new Set([
  'at',
  'charAt',
  'endsWith',
  'includes',
  'indexOf',
  'lastIndexOf',
  'match',
  'matchAll',
  'replace',
  'replaceAll',
  'search',
  'slice',
  'split',
  'startsWith',
  'substring',
])
/** Methods that take the sentence as an argument. */
const askingMethods = new Set(['exec', 'get', 'has', 'includes', 'test'])

const same = 'finds the same sentence once more, to show it once'

/** What reads no sentence of ours: the file, the code, and the reason. */
const allowed: readonly (readonly [file: string, code: string, reason: string])[] = [
  ['cli/daemon-client/start.ts', 'message.replace(/^doorward: /', 'standard error of a process'],
  ['cli/errors.ts', '', 'messages of commander'],
  ['cli/commands/daemon/install.ts', 'known.has(detail)', same],
  ['daemon/config/live-config.ts', 'this.#logged.has(detail)', same],
  ['shared/sandbox/warnings.ts', 'known.has(detail)', same],
  ['daemon/oauth/tokens/keychain-helper.ts', '/', 'messages of the keychain'],
  ['daemon/oauth/tokens/keychain.ts', 'toPlainLine(detail) .replace(/', 'messages of the keychain'],
  ['daemon/util/http-retry-after.ts', '/rate limit|abuse/', 'messages of GitHub'],
  ['daemon/webhook/rules/choose.ts', 'title?.replace(/^[\\w ]+ Hook', 'names of events of GitLab'],
  ['daemon/workspace/fetch.ts', '', 'messages of git'],
  ['daemon/workspace/mirror.ts', '', 'messages of git'],
  ['shared/config/yaml.ts', '', 'messages of the YAML parser'],
  ['shared/liquid-faults.ts', '', 'messages of liquidjs'],
  ['tray/actions/daemon.ts', "message.split('\\n')", 'takes the line that fits into a row'],
  ['tray/text.ts', 'plainText(title).replaceAll(', 'escapes markup'],
]

type Node = { readonly type: string; readonly start: number; readonly end: number } & Readonly<
  Record<string, unknown>
>

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value

const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode)

const walk = (node: Node, visit: (node: Node) => void): void => {
  visit(node)
  for (const child of childrenOf(node)) walk(child, visit)
}

const nameOf = (node: unknown): string | undefined =>
  isNode(node) && node.type === 'Identifier' ? String(node['name']) : undefined

/** The name of the field whose text an expression is, also behind `!`, `?? ''`, `trim()` or a function. */
const findField = (node: unknown, names: ReadonlySet<string>): string | undefined => {
  if (!isNode(node)) return undefined
  const inside = (...keys: string[]) =>
    keys
      .flatMap((key) => node[key])
      .map((child) => findField(child, names))
      .find((field) => field !== undefined)
  switch (node.type) {
    case 'Identifier':
      return names.has(String(node['name'])) ? String(node['name']) : undefined
    case 'MemberExpression': {
      const name = node['computed'] === true ? undefined : nameOf(node['property'])
      return name !== undefined && fields.has(name) ? name : undefined
    }
    case 'CallExpression': {
      const { callee } = node
      const isMethod = isNode(callee) && callee.type === 'MemberExpression'
      return isMethod ? findField(callee['object'], names) : inside('arguments')
    }
    case 'LogicalExpression':
      return inside('left', 'right')
    case 'TemplateLiteral':
      return inside('expressions')
    case 'ChainExpression':
    case 'TSAsExpression':
    case 'TSNonNullExpression':
      return inside('expression')
    default:
      return undefined
  }
}

/** The fields, and the other names that they get in a file, as by `const { detail: why } = …`. */
const findNames = (program: Node): ReadonlySet<string> => {
  const names = new Set(fields)
  walk(program, (node) => {
    const { key, value, id, init } = node
    const bound = isNode(value) && value.type === 'AssignmentPattern' ? value['left'] : value
    if (node.type === 'Property' && fields.has(nameOf(key) ?? ''))
      names.add(nameOf(bound) ?? 'hint')
    const isCopy = isNode(init) && ['ChainExpression', 'MemberExpression'].includes(init.type)
    if (node.type === 'VariableDeclarator' && isCopy && findField(init, fields) !== undefined)
      names.add(nameOf(id) ?? 'hint')
  })
  return names
}

const isReader = (node: Node, names: ReadonlySet<string>): boolean => {
  const field = (value: unknown) => findField(value, names)
  switch (node.type) {
    case 'CallExpression': {
      const { callee, arguments: given } = node
      if (!isNode(callee) || callee.type !== 'MemberExpression') return false
      const method = nameOf(callee['property']) ?? ''
      const [first] = given as readonly Node[]
      // Shortens it only.
      if (method === 'slice' && first?.['value'] === 0) return false
      return (
        (readingMethods.has(method) && field(callee['object']) !== undefined) ||
        (askingMethods.has(method) && field(first) !== undefined)
      )
    }
    case 'BinaryExpression': {
      const { operator, left, right } = node
      if (!['===', '!=='].includes(String(operator))) return false
      const [a, b] = [field(left), field(right)]
      const isNothing = [left, right].some(
        (side) =>
          nameOf(side) === 'undefined' ||
          (isNode(side) && !side['value'] && side.type === 'Literal'),
      )
      // Two of a kind may be compared.
      return (a ?? b) !== undefined && a !== b && !isNothing
    }
    case 'MemberExpression':
      return node['computed'] === true && field(node['property']) !== undefined
    case 'SwitchStatement':
      return field(node['discriminant']) !== undefined
    default:
      return false
  }
}

const findReaders = (source: string): string[] => {
  const program = parseAst(source, { lang: 'ts' }) as unknown as Node
  const names = findNames(program)
  const found: string[] = []
  walk(program, (node) => {
    if (isReader(node, names))
      found.push(source.slice(node.start, node.end).replaceAll(/\s+/g, ' '))
  })
  return found
}

const root = fileURLToPath(packageFolder)

const listSources = async (): Promise<string[]> => {
  const lists = await Promise.all(
    ['cli', 'daemon', 'shared', 'tray'].map(async (folder) =>
      (await readdir(`${root}/${folder}`, { recursive: true })).map((name) => `${folder}/${name}`),
    ),
  )
  return lists.flat().filter((path) => path.endsWith('.ts'))
}

describe('a sentence', () => {
  it('of ours is read by no code', async () => {
    const found: string[] = []
    for (const path of await listSources()) {
      const known = allowed.flatMap(([file, code]) => (file === path ? [code] : []))
      for (const code of findReaders(await readFile(`${root}/${path}`, 'utf8')))
        if (!known.some((start) => code.startsWith(start))) found.push(`${path}: ${code}`)
    }
    assert.deepEqual(found, [], 'put what the code needs to know into `code` or `about`')
  })

  for (const reader of [
    "problem.hint?.startsWith('doorward oauth login ')",
    "/evt_\\w+$/.exec(event.detail ?? '')",
    '/taken/.test(`${error.message} ${error.hint}`)',
    "const { detail: why } = event; why.includes('reloaded')",
    "const why = error.message; why.split('; ')",
    "problems.find(({ hint }) => hint === 'doorward daemon restart')",
    "toPlainLine(detail).trim().replace('webhook ', '')",
    'byHint[hint]',
    "['restart'].includes(title)",
    'switch (note.title) {}',
  ])
    it(`is seen to be read by ${reader}`, () => assert.equal(findReaders(reader).length > 0, true))

  for (const code of [
    'terminal.warn(`${message}: ${hint}`)',
    'detail.slice(0, 200)',
    'hint === undefined || detail === ""',
    'shown[0]?.hint === hint',
    "error.code === 'needs-login'",
  ])
    it(`is not read by ${code}`, () => assert.deepEqual(findReaders(code), []))
})
