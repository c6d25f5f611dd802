import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Line and column, both from 0. */
export type Place = { readonly line: number; readonly character: number }

export type Diagnostic = {
  readonly message: string
  readonly range: { readonly start: Place; readonly end: Place }
}

/** A language server for YAML, as an editor runs it. */
export type LanguageServer = {
  /** Opens a file with this text; gives what is marked in it. */
  readonly open: (path: string, text: string) => Promise<readonly Diagnostic[]>
  /** What is offered where the cursor stands. */
  readonly complete: (path: string, at: Place) => Promise<readonly string[]>
  /** What is shown of the word under the mouse. */
  readonly hover: (path: string, at: Place) => Promise<string>
  readonly stop: () => Promise<void>
}

type Message = {
  readonly id?: number | string
  readonly method?: string
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

const waitMs = 20_000
const running = new Set<ChildProcess>()

/** Starts `yaml-language-server`, with the settings of an editor that nobody has changed. */
export const startLanguageServer = async (): Promise<LanguageServer> => {
  const require = createRequire(import.meta.url)
  const folder = dirname(require.resolve('yaml-language-server/package.json'))
  const program = join(folder, 'bin', 'yaml-language-server')
  const child = spawn(process.execPath, [program, '--stdio'], { stdio: ['pipe', 'pipe', 'pipe'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = once(child, 'exit')

  const answers = new Map<number, (message: Message) => void>()
  const marked = new Map<string, (found: readonly Diagnostic[]) => void>()
  const write = (message: object): void => {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))
    child.stdin.write(`Content-Length: ${body.length}\r\n\r\n`)
    child.stdin.write(body)
  }
  const take = (message: Message): void => {
    const { id, method, params, result } = message
    if (method === undefined) {
      answers.get(Number(id))?.(message)
      return
    }
    if (method === 'textDocument/publishDiagnostics') {
      const { uri, diagnostics } = params as { uri: string; diagnostics: Diagnostic[] }
      marked.get(uri)?.(diagnostics)
    }
    // What it asks its editor: settings, and leave to be told of changes.
    if (id !== undefined)
      write({
        id,
        result: method === 'workspace/configuration' ? itemsOf(params) : (result ?? null),
      })
  }
  readMessages(child, take)

  let last = 0
  const ask = async <Result>(method: string, params: object): Promise<Result> => {
    const id = (last += 1)
    const answered = new Promise<Message>((resolve) => answers.set(id, resolve))
    write({ id, method, params })
    const { result, error } = await within(answered, method, ended, () => stderr)
    if (error) throw new Error(`${method}: ${error.message}`)
    return result as Result
  }

  await ask('initialize', {
    processId: process.pid,
    rootUri: null,
    capabilities: {
      workspace: { configuration: true },
      textDocument: {
        completion: { completionItem: { documentationFormat: ['markdown'] } },
        hover: { contentFormat: ['markdown', 'plaintext'] },
        publishDiagnostics: {},
      },
    },
  })
  write({ method: 'initialized', params: {} })

  const at = (path: string, position: Place) => ({
    textDocument: { uri: pathToFileURL(path).href },
    position,
  })
  return {
    open: async (path, text) => {
      const uri = pathToFileURL(path).href
      const found = new Promise<readonly Diagnostic[]>((resolve) => marked.set(uri, resolve))
      write({
        method: 'textDocument/didOpen',
        params: { textDocument: { uri, languageId: 'yaml', version: 1, text } },
      })
      return within(found, 'diagnostics', ended, () => stderr)
    },
    complete: async (path, position) => {
      const { items } = await ask<{ items: { label: string }[] }>(
        'textDocument/completion',
        at(path, position),
      )
      return items.map(({ label }) => label)
    },
    hover: async (path, position) => {
      const shown = await ask<{ contents: { value: string } } | null>(
        'textDocument/hover',
        at(path, position),
      )
      return shown?.contents.value ?? ''
    },
    stop: async () => {
      await ask('shutdown', {})
      write({ method: 'exit' })
      await ended
    },
  }
}

/** Messages behind their length (the base protocol of the Language Server Protocol). */
const readMessages = (child: ChildProcess, take: (message: Message) => void): void => {
  let read = Buffer.alloc(0)
  child.stdout?.on('data', (chunk: Buffer) => {
    read = Buffer.concat([read, chunk])
    for (;;) {
      const end = read.indexOf('\r\n\r\n')
      const length = Number(/Content-Length: (\d+)/i.exec(read.subarray(0, end).toString())?.[1])
      if (end === -1 || read.length < end + 4 + length) return
      const body = read.subarray(end + 4, end + 4 + length).toString()
      read = read.subarray(end + 4 + length)
      take(JSON.parse(body) as Message)
    }
  })
}

/** No list of schemas from the internet: the line in the file is all that counts. */
const settings = {
  yaml: { schemaStore: { enable: false }, validate: true, hover: true, completion: true },
}

const itemsOf = (params: unknown): unknown[] =>
  (params as { items: { section?: string }[] }).items.map(({ section }) =>
    section === 'yaml' ? settings.yaml : {},
  )

const within = async <Value>(
  promise: Promise<Value>,
  what: string,
  ended: Promise<unknown>,
  stderr: () => string,
): Promise<Value> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what} in ${waitMs} ms`)), waitMs)
  })
  const gone = ended.then(() => {
    throw new Error(`the language server ended before its ${what}: ${stderr()}`)
  })
  gone.catch(() => undefined)
  try {
    return await Promise.race([promise, late, gone])
  } finally {
    clearTimeout(timer)
  }
}

/** Ends what a failed test left running. */
export const killLanguageServers = (): void => {
  for (const child of running) child.kill('SIGKILL')
}
