import { createRequire } from 'node:module'
import type { Context, Emitter, Output, Template, TopLevelToken, VariableSegments } from 'liquidjs'
import type * as LiquidJs from 'liquidjs'
import { DoorwardError } from './errors.ts'
import {
  checkAnyItem,
  checkTag,
  maxMilliseconds,
  maxUnits,
  tags,
  toError,
  toParseError,
  toRenderError,
} from './liquid-faults.ts'
import { each, formatPath, type Path } from './paths.ts'
import { didYouMean } from './text.ts'

/*
 * Templates with loops, conditions and filters: Liquid, by liquidjs. The owner writes the template, strangers
 * the values. Whatever filters, variables and captures a value goes through, it is written by `ValueOutput`,
 * whose caller can fence it; only the text of the template is written unchanged. So no tag may stay that
 * writes a value in another way (`echo`, `cycle`), or that reads a file.
 */

/** A piece of a rendered template: its own text, with `from` what an output wrote, or the place of a context. */
export type Piece = { readonly text: string; readonly from?: string; readonly context?: string }

/** Writes a value. `isComposed` for JSON, and for a text that may be made of several values. */
export type WriteValue = (value: unknown, isComposed: boolean) => string

export type LiquidTemplate = {
  readonly source: string
  /** The values of a delivery that it reads. */
  readonly paths: readonly Path[]
  /** Throws `template-failed`. */
  readonly render: (scope: object, write: WriteValue) => Piece[]
}

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
 * Parses a template. `checkPath` throws for a value that no delivery has; `roots` are the first names of those
 * that it has; `toContextPath` knows the text of an output that is the place of a context. Throws `config-invalid` with the line of the first fault.
 */
export const parseLiquid = (
  source: string,
  checkPath: (path: Path) => void,
  roots: readonly string[] = [],
  toContextPath: (text: string) => Path | undefined = () => undefined,
): LiquidTemplate => {
  engine ??= loadEngine()
  const { parse, render } = engine
  const { nodes, variables, inside, contexts } = parse(source, toContextPath)
  for (const { path, line } of variables)
    try {
      checkPath(path)
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      const isText = path.length === 1 && didYouMean(String(path[0]), roots) === undefined
      const hint = isText ? `a text needs quotes: "${formatPath(path)}"` : error.hint
      throw toError(line, `${formatPath(path)}: ${error.message}`, hint)
    }
  return {
    source,
    paths: [...variables.map(({ path }) => path), ...inside, ...contexts],
    render: (scope, write) => render(nodes, scope, write),
  }
}

type Engine = {
  readonly parse: (
    source: string,
    toContextPath: (text: string) => Path | undefined,
  ) => {
    readonly nodes: Template[]
    readonly variables: readonly { readonly path: Path; readonly line: number }[]
    /** The values that are read by names of loops and assignments. */
    readonly inside: readonly Path[]
    readonly contexts: readonly Path[]
  }
  readonly render: (nodes: Template[], scope: object, write: WriteValue) => Piece[]
}

/** Loaded with the first template that needs it. */
let engine: Engine | undefined

const loadEngine = (): Engine => {
  const liquidjs = createRequire(import.meta.url)('liquidjs') as typeof LiquidJs

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
  liquid.registerFilter('truncate_bytes', truncateBytes)
  const filters = Object.keys(liquid.filters)

  const ValueParser = createParser(liquidjs, liquid)

  return {
    parse: (source, toContextPath) => {
      try {
        const parser = new ValueParser(toContextPath)
        const nodes = parser.parse(source)
        const { globals, variables } = liquid.analyzeSync(nodes)
        const ofDelivery = Object.values(globals)
          .flat()
          .map(({ segments, location }) => ({ path: toPath(segments), line: location.row }))
        const all = Object.values(variables).flat()
        return {
          nodes,
          contexts: parser.contexts,
          variables: ofDelivery,
          inside: resolveNames(
            source,
            all.map(({ segments }) => toPath(segments)),
          ),
        }
      } catch (error) {
        throw toParseError(error, filters)
      }
    },
    render: (nodes, scope, write) => {
      const emitter = new PieceEmitter(write)
      const context = new liquidjs.Context(scope, liquid.options, { sync: true }, { liquid })
      try {
        liquidjs.toValueSync(liquid.renderer.renderTemplates(nodes, context, emitter))
      } catch (error) {
        throw toRenderError(error)
      }
      return emitter.pieces
    },
  }
}

/** The class of the parser of everything, also of what is inside tags. */
const createParser = (
  { Output, Parser, Tokenizer, TypeGuards }: typeof LiquidJs,
  liquid: LiquidJs.Liquid,
) => {
  const filters = Object.keys(liquid.filters)

  class ValueOutput extends Output {
    readonly #isOneText = isOneText(this);

    override *render(context: Context, emitter: Emitter): IterableIterator<unknown> {
      const value: unknown = yield this.value.value(context, false)
      const isComposed = typeof value === 'object' || !this.#isOneText
      const written = new Written(value, isComposed, textOf(this))
      context.memoryLimit.use(String(written).length)
      emitter.write(written)
    }
  }

  /** `{{context.diff}}`, which is no value yet: for the analysis it reads nothing. */
  class ContextOutput extends Output {
    override *render(_context: Context, emitter: Emitter): IterableIterator<unknown> {
      emitter.write(yield new ContextPlace(textOf(this).slice('context.'.length)))
    }

    override *arguments(): IterableIterator<never> {
      // None.
    }
  }

  return class ValueParser extends Parser {
    readonly contexts: Path[] = []
    readonly #toContextPath: (text: string) => Path | undefined
    #isCaptured = false

    constructor(toContextPath: (text: string) => Path | undefined) {
      super(liquid)
      this.#toContextPath = toContextPath
    }

    override parseToken(token: TopLevelToken, rest: TopLevelToken[]) {
      try {
        if (TypeGuards.isTagToken(token)) checkTag(token)
        if (!TypeGuards.isOutputToken(token)) return this.#parseOther(token, rest)
        const place = this.#isCaptured ? undefined : this.#toContextPath(token.content)
        if (place) {
          this.contexts.push(place)
          return new ContextOutput(token, liquid)
        }
        checkAnyItem(token.getText())
        const { operators } = liquid.options
        const tokenizer = new Tokenizer(token.input, operators, token.file, token.contentRange)
        tokenizer.readFilteredValue()
        if (!tokenizer.end()) throw new Error('expected "|" before filter')
        return new ValueOutput(token, liquid)
      } catch (error) {
        throw toParseError(error, filters, token)
      }
    }

    /** A tag reads what is inside it while it is made. */
    #parseOther(token: TopLevelToken, rest: TopLevelToken[]) {
      const before = this.#isCaptured
      this.#isCaptured ||= TypeGuards.isTagToken(token) && token.name === 'capture'
      const parsed = super.parseToken(token, rest)
      this.#isCaptured = before
      return parsed
    }
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

/** The value of an output. A capture keeps it as text, which an output writes later. */
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

/** The place that `{{context.diff}}` writes. */
class ContextPlace {
  readonly name: string

  constructor(name: string) {
    this.name = name
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
    if (written instanceof ContextPlace) this.pieces.push({ text: '', context: written.name })
    else if (written instanceof Written)
      this.pieces.push({
        text: this.#write(written.value, written.isComposed),
        from: written.from,
      })
    else this.pieces.push({ text: String(written) })
  }
}

/** `event.title | upcase` of `{{ event.title | upcase }}`. */
const textOf = ({ token }: Output): string =>
  token.getText().replaceAll(/^\{\{-?\s*|\s*-?\}\}$/g, '')

/** A capture or an assigned text has no properties: `commit.message` is a value as it came. */
const isOneText = (output: Output): boolean =>
  /^[\w-]+[.[]/.test(textOf(output)) &&
  output.value.filters.every(({ name }) => ofOneText.has(name))

const ellipsis = '…'

/**
 * Cuts a text to so many bytes of JSON in UTF-8, as servers count them: a Chinese character takes three, and a
 * quote or a line break two.
 */
const truncateBytes = (value: unknown, limit: unknown): string => {
  const text = typeof value === 'string' ? value : (JSON.stringify(value ?? '') ?? '')
  const maxBytes = Number(limit) - Buffer.byteLength(ellipsis)
  let bytes = 0
  let length = 0
  let kept = 0
  for (const character of text) {
    bytes += Buffer.byteLength(JSON.stringify(character)) - 2
    length += character.length
    if (bytes <= maxBytes) kept = length
    else if (bytes > Number(limit)) return `${text.slice(0, kept)}${ellipsis}`
  }
  return text
}
