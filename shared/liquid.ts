import { createRequire } from 'node:module'
import type {
  Context,
  Emitter,
  Output,
  TagToken,
  Template,
  Token,
  TopLevelToken,
  VariableSegments,
} from 'liquidjs'
import type * as LiquidJs from 'liquidjs'
import { DoorwardError } from './errors.ts'
import { each, formatPath, type Path } from './paths.ts'
import { didYouMean } from './text.ts'

/*
 * Templates with loops, conditions and filters: Liquid, by liquidjs. The owner writes the template, strangers
 * the values. Whatever filters, variables and captures a value goes through, it is written by `ValueOutput`,
 * whose caller can fence it; only the text of the template is written unchanged. So no tag may stay that
 * writes a value in another way (`echo`, `cycle`), or that reads a file.
 */

/** A piece of a rendered template: its own text, or with `from` what an output wrote. */
export type Piece = { readonly text: string; readonly from?: string }

/** Writes a value. `isComposed` for JSON, and for a text that may be made of several values. */
export type WriteValue = (value: unknown, isComposed: boolean) => string

export type LiquidTemplate = {
  readonly source: string
  /** The values of a delivery that it reads. */
  readonly paths: readonly Path[]
  /** Throws `template-failed`. */
  readonly render: (scope: object, write: WriteValue) => Piece[]
}

/** Limits of one rendering, during which the daemon does nothing else. */
const maxMilliseconds = 250
/** Characters and list items that filters and outputs copy. */
const maxUnits = 5_000_000

const tags = [
  'assign',
  'break',
  'capture',
  'case',
  'comment',
  'continue',
  'for',
  'if',
  'raw',
  'unless',
  '#',
]

const readsFiles = 'a template cannot read files'

/** The tags of Liquid that are left out, and why or what to write instead. */
const leftOut = new Map([
  ['include', readsFiles],
  ['render', readsFiles],
  ['layout', readsFiles],
  ['block', readsFiles],
  ['echo', 'write {{ … }}'],
  ['liquid', 'write each tag between its own {% and %}'],
  ['cycle', 'write {% if %} with forloop.index'],
  ['increment', 'write {% assign %} with the filter plus'],
  ['decrement', 'write {% assign %} with the filter minus'],
  ['tablerow', 'write {% for %}'],
])

/** Filters that change one text, and add no other value to it. */
const ofOneText = new Set([
  'capitalize',
  'default',
  'downcase',
  'lstrip',
  'normalize_whitespace',
  'rstrip',
  'slice',
  'squish',
  'strip',
  'strip_html',
  'strip_newlines',
  'truncate',
  'truncatewords',
  'upcase',
])

/**
 * Parses a template. `checkPath` throws for a value that no delivery has. Throws `config-invalid` with the
 * line of the first fault.
 */
export const parseLiquid = (source: string, checkPath: (path: Path) => void): LiquidTemplate => {
  engine ??= loadEngine()
  const { parse, render } = engine
  const { nodes, variables, inside } = parse(source)
  for (const { path, line } of variables)
    try {
      checkPath(path)
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      const isText = path.length === 1 && !error.hint?.startsWith('did you mean')
      const hint = isText ? `a text needs quotes: "${formatPath(path)}"` : error.hint
      throw toError(line, `${formatPath(path)}: ${error.message}`, hint)
    }
  return {
    source,
    paths: [...variables.map(({ path }) => path), ...inside],
    render: (scope, write) => render(nodes, scope, write),
  }
}

type Engine = {
  readonly parse: (source: string) => {
    readonly nodes: Template[]
    readonly variables: readonly { readonly path: Path; readonly line: number }[]
    /** What is read by way of the names that loops and assignments give. */
    readonly inside: readonly Path[]
  }
  readonly render: (nodes: Template[], scope: object, write: WriteValue) => Piece[]
}

/** Loaded with the first template that needs it. */
let engine: Engine | undefined

const loadEngine = (): Engine => {
  const liquidjs = createRequire(import.meta.url)('liquidjs') as typeof LiquidJs
  const { LiquidError, Parser, Tokenizer, TypeGuards, toValueSync } = liquidjs

  const liquid = new liquidjs.Liquid({
    ownPropertyOnly: true,
    strictFilters: true,
    renderLimit: maxMilliseconds,
    memoryLimit: maxUnits,
    // No template is looked for in a file.
    templates: {},
  })
  for (const name of Object.keys(liquid.tags)) if (!tags.includes(name)) delete liquid.tags[name]
  // It says that a value needs no fence.
  liquid.unregisterFilter('raw')
  const filters = Object.keys(liquid.filters)

  class ValueOutput extends liquidjs.Output {
    readonly #isOneText = isOneText(this);

    override *render(context: Context, emitter: Emitter): IterableIterator<unknown> {
      const value: unknown = yield this.value.value(context, false)
      const isComposed = typeof value === 'object' || !this.#isOneText
      const written = new Written(value, isComposed, textOf(this))
      context.memoryLimit.use(String(written).length)
      emitter.write(written)
    }
  }

  /** The parser of everything, also of what is inside tags. */
  class ValueParser extends Parser {
    override parseToken(token: TopLevelToken, rest: TopLevelToken[]) {
      try {
        if (TypeGuards.isTagToken(token)) checkTag(token)
        if (!TypeGuards.isOutputToken(token)) return super.parseToken(token, rest)
        checkAnyItem(token.getText())
        const { operators } = liquid.options
        const tokenizer = new Tokenizer(token.input, operators, token.file, token.contentRange)
        tokenizer.readFilteredValue()
        if (!tokenizer.end()) throw new Error('expected "|" before filter')
        return new ValueOutput(token, liquid)
      } catch (error) {
        throw toParseError(error, token)
      }
    }
  }

  const toParseError = (error: unknown, token?: Token): unknown => {
    if (!(error instanceof Error) || error instanceof DoorwardError) return error
    const isTheirs = LiquidError.is(error)
    const cause = isTheirs ? (error.originalError ?? error) : error
    // A fault inside a tag arrives wrapped for the tag.
    if (cause instanceof DoorwardError) return cause
    const at = isTheirs ? error.token : token
    const [line = 1] = at?.getPosition() ?? []
    const reason = cause.message.replace(/, line:\d+, col:\d+$/, '')
    const [, filter] = /^undefined filter: (.*)$/s.exec(reason) ?? []
    if (filter !== undefined)
      return toError(line, `there is no filter ${filter}`, didYouMean(filter, filters))
    const text = token?.getText() ?? ''
    return toError(
      line,
      reason.includes(text) ? reason : `${shorten(text)}: ${reason}`,
      TypeGuards.isTagToken(token) ? conditionHint : outputHint(text),
    )
  }

  return {
    parse: (source) => {
      try {
        const nodes = new ValueParser(liquid).parse(source)
        const { globals, variables } = liquid.analyzeSync(nodes)
        const ofDelivery = Object.values(globals)
          .flat()
          .map(({ segments, location }) => ({ path: toPath(segments), line: location.row }))
        const all = Object.values(variables).flat()
        return {
          nodes,
          variables: ofDelivery,
          inside: resolveNames(
            source,
            all.map(({ segments }) => toPath(segments)),
          ),
        }
      } catch (error) {
        throw toParseError(error)
      }
    },
    render: (nodes, scope, write) => {
      const emitter = new PieceEmitter(write)
      const context = new liquidjs.Context(scope, liquid.options, { sync: true }, { liquid })
      try {
        toValueSync(liquid.renderer.renderTemplates(nodes, context, emitter))
      } catch (error) {
        const token = LiquidError.is(error) ? error.token : undefined
        throw toRenderError(error, token?.getPosition()[0])
      }
      return emitter.pieces
    },
  }
}

/** Up to an index that is a variable itself. */
const toPath = (segments: VariableSegments): string[] => {
  const end = segments.findIndex((name) => typeof name === 'object')
  return segments.slice(0, end === -1 ? undefined : end).map(String)
}

const naming = /\{%-?\s*(?:for\s+([\w-]+)\s+in|assign\s+([\w-]+)\s*=)\s*([\w-]+(?:\.[\w-]+)*)/g

/** `event.commits[*].id` for `commit.id` in a loop over `event.commits`. */
const resolveNames = (source: string, paths: readonly Path[]): Path[] => {
  const named = new Map<string, Path>()
  for (const [, item, name = item ?? '', of = ''] of source.matchAll(naming)) {
    const [root = '', ...rest] = of.split('.')
    const path = [...(named.get(root) ?? [root]), ...rest]
    named.set(name, item === undefined ? path : [...path, each])
  }
  return paths.flatMap(([root, ...rest]) => {
    const path = typeof root === 'string' ? named.get(root) : undefined
    return path?.[0] === 'event' ? [[...path, ...rest]] : []
  })
}

/** What an output writes. A capture keeps it as text, which an output writes later. */
class Written {
  readonly value: unknown
  readonly isComposed: boolean
  readonly from: string

  constructor(value: unknown, isComposed: boolean, from: string) {
    this.value = value
    this.isComposed = isComposed
    this.from = from
  }

  toString(): string {
    if (this.value === undefined || this.value === null) return ''
    return typeof this.value === 'object' ? JSON.stringify(this.value) : String(this.value)
  }
}

class PieceEmitter {
  readonly buffer = ''
  readonly pieces: Piece[] = []
  readonly #write: WriteValue

  constructor(write: WriteValue) {
    this.#write = write
  }

  write(written: unknown): void {
    const piece =
      written instanceof Written
        ? { text: this.#write(written.value, written.isComposed), from: written.from }
        : { text: String(written) }
    this.pieces.push(piece)
  }
}

/** `event.title | upcase` of `{{ event.title | upcase }}`. */
const textOf = ({ token }: Output): string =>
  token.getText().replaceAll(/^\{\{-?\s*|\s*-?\}\}$/g, '')

/** A capture or an assigned text has no properties: `commit.message` is a value as it came. */
const isOneText = (output: Output): boolean =>
  /^[\w-]+[.[]/.test(textOf(output)) &&
  output.value.filters.every(({ name }) => ofOneText.has(name))

const withoutQuotes = (text: string): string => text.replaceAll(/"[^"]*"|'[^']*'/g, '""')

/** `[*]` of a placeholder without filters, which Liquid reads as nothing. */
const checkAnyItem = (text: string): void => {
  const [whole, list = '', name] = /([\w.-]+)\[\*\](?:\.([\w-]+))?/.exec(withoutQuotes(text)) ?? []
  if (whole === undefined) return
  const map = name === undefined ? '' : ` | map: "${name}"`
  throw new Error(`beside tags and filters, write ${list}${map} | join: ", " for ${whole}`)
}

const checkTag = ({ name, args }: TagToken): void => {
  const reason = leftOut.get(name)
  if (reason !== undefined) throw new Error(`{% ${name} %} cannot be used: ${reason}`)
  if (/^(end|els|when$)/.test(name)) throw new Error(`{% ${name} %} has no tag that it belongs to`)
  if (!tags.includes(name))
    throw new Error(
      `there is no tag {% ${name} %}: ${didYouMean(name, tags) ?? `use ${tags.join(', ')}`}`,
    )
  checkAnyItem(args)
  if (name === 'for' && withoutQuotes(args).includes('|'))
    throw new Error('a filter in {% for %} does nothing: put it into {% assign list = … %} first')
}

const toError = (line: number, reason: string, hint?: string) =>
  new DoorwardError('config-invalid', `line ${line} of the template: ${reason}`, { hint })

const shorten = (text: string): string => (text.length <= 80 ? text : `${text.slice(0, 79)}…`)

const outputHint = (text: string): string =>
  /^\{\{-?\s*(event|headers)\b/.test(text)
    ? 'a name with dots, spaces or slashes is written event["…"], and a filter | truncate: 80'
    : 'for braces that stay as they are write {% raw %}{{ … }}{% endraw %}'

const conditionHint =
  'a condition has ==, !=, >, <, >=, <=, contains, and, or: {% if event.action == "opened" %}'

/** The message of the library may quote a value, so it is not shown. */
const toRenderError = (error: unknown, line: number | undefined): DoorwardError => {
  const message = error instanceof Error ? error.message : ''
  const where = line === undefined ? '' : ` in its line ${line}`
  const why = message.startsWith('template render limit')
    ? `it takes longer than ${maxMilliseconds} ms`
    : message.startsWith('memory alloc limit')
      ? `it copies more than ${maxUnits / 1_000_000} million characters or items`
      : 'a tag or filter cannot use a value of this event'
  return new DoorwardError('template-failed', 'a template cannot be filled from this event', {
    localDetail: `the template cannot be filled${where}: ${why}`,
    cause: error,
  })
}
