import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pino from 'pino'
import type { EventRecord } from '../../../shared/api/api.ts'
import type { Home } from '../../../shared/home/home.ts'
import { checkConfig, type Config } from '../../../shared/config/load.ts'
import { readYaml } from '../../../shared/config/yaml.ts'
import { createRecordedRun } from '../../../daemon/agents/orphans.ts'
import { createCommentMarks } from '../../../daemon/delivery/loop-guard.ts'
import { isFinal } from '../../../daemon/events/event-record.ts'
import { createIntake } from '../../../daemon/intake.ts'
import type { Log } from '../../../daemon/log/log.ts'
import { createMemory } from '../../../daemon/state.ts'
import { createEngine, type Engine } from '../../../daemon/webhook/engine.ts'
import type { AcceptedEvent } from '../../../daemon/webhook/events/accepted-event.ts'
import { Workspaces } from '../../../daemon/workspace/workspaces.ts'
import type { HeldSecret } from '../../../daemon/delivery/secrets/held.ts'
import { temporaryHome } from '../temporary.ts'

/** What one process of a daemon has for events, with real agents and files as targets. */
export type TestMachine = Awaited<ReturnType<typeof startTestMachine>>

export type TestMachineOptions = {
  readonly role?: 'receiver' | 'worker' | 'both'
  /** The address of a broker; without one, the queue in memory. */
  readonly servers?: string
  readonly key?: string
  /** The seed of the nkey with which it logs in at the broker. */
  readonly seed?: string
  readonly log?: Log
  readonly maxEvents?: number
  readonly concurrency?: number
  readonly agents?: string
  readonly lostAfter?: string
  readonly webhooks?: string
  /** That of a machine before. */
  readonly home?: Home
  /** How many events are remembered. */
  readonly keep?: number
  /** The tokens of its logins. */
  readonly held?: readonly HeldSecret[]
}

/** Each run of `waits` ends when there is a file with the name in its prompt. */
const agents = `
  echo: { kind: echo, concurrency: 2 }
  waits: { kind: command, command: [sh, -c, 'read -r name; until [ -e "$name" ]; do sleep 0.02; done; cat "$name"'] }
  fails: { kind: command, command: [sh, -c, 'echo it broke >&2; exit 3'] }
`

export const newKey = (): string => randomBytes(32).toString('base64')

export const startTestMachine = async ({
  role = 'both',
  servers,
  key = '',
  seed,
  log = pino({ level: process.env['TEST_LOG'] ?? 'silent' }),
  maxEvents = 100,
  concurrency = 4,
  agents: more = '',
  lostAfter = '1m',
  webhooks = '[]',
  home: earlier,
  keep = 200,
  held = [],
}: TestMachineOptions = {}) => {
  const home = earlier ?? (await temporaryHome())
  await mkdir(home.run, { recursive: true, mode: 0o700 })
  const engineName = servers === undefined ? 'memory' : 'nats'
  const env: NodeJS.ProcessEnv = {
    PATH: process.env['PATH'],
    NATS_URL: servers,
    DOORWARD_QUEUE_KEY: key,
    NATS_SEED: seed,
  }
  const login = seed === undefined ? '' : 'nkey_env: NATS_SEED, '
  const queueText = `${login}engine: ${engineName}, role: ${role}, max_events: ${maxEvents}, concurrency: ${concurrency}, lost_after: ${lostAfter}`
  const config: Config = checkConfig(
    readYaml('gateway.yaml', `queue: { ${queueText} }`),
    readYaml('agents.yaml', `agents:${agents}${more}`),
    readYaml('webhooks.yaml', `webhooks: ${webhooks}`),
    env,
  )
  const memory = createMemory(keep)
  const { events, kept, deliveries } = memory
  const current = (): Engine => engine
  const intake = createIntake(config.gateway.queue, { home, memory, current, log })
  const { queue } = intake
  const access = async () => Promise.reject(new Error('no login'))
  const run = createRecordedRun(home)
  const engine = createEngine(config, env, [], {
    ...memory,
    home,
    queue,
    access,
    held: async () => held,
    run,
    workspaces: new Workspaces({ home, run, access }),
    marks: createCommentMarks('token'),
    log,
    hasTray: () => false,
  })

  const until = async (id: string, isIt: (record: EventRecord) => boolean): Promise<EventRecord> =>
    new Promise((resolve) => {
      const record = events.record(id)
      if (record && isIt(record)) return resolve(record)
      const stop = events.follow(({ record: changed }) => {
        if (changed.id !== id || !isIt(changed)) return
        stop()
        resolve(changed)
      })
    })
  const toEvent = (
    agentName: string,
    prompt: string,
    rest: Partial<AcceptedEvent> = {},
  ): AcceptedEvent => {
    const agent = config.agents.get(agentName)
    if (!agent) throw new Error(`no agent ${agentName}`)
    return {
      webhook: {
        path: '/a',
        agentName,
        agent,
        values: { eventText: 'plain', maxValueLength: undefined },
      },
      receivedAt: new Date(),
      known: { webhook: '/a', agent: agentName, size: 1, signed: false },
      prompt,
      targets: [{ text: 'file:answers.md', kind: 'file', path: 'answers.md' }],
      ...rest,
    }
  }
  queue.resume()
  return {
    home,
    memory,
    intake,
    queue,
    engine,
    kept,
    deliveries,
    toEvent,
    until,
    /** As after a change of `.env`. */
    setKeys: (...keys: readonly string[]) => {
      env['DOORWARD_QUEUE_KEY'] = keys.join(',')
    },
    isConnected: () => queue.machines?.().broker?.connected ?? true,
    /** Accepts one event for this agent; resolves with its id. */
    accept: async (...given: Parameters<typeof toEvent>): Promise<string> => {
      const [placed] = await engine.runEvent.accept([toEvent(...given)])
      return placed?.id ?? ''
    },
    untilState: async (id: string, state: EventRecord['state']) =>
      until(id, (record) => record.state === state),
    untilOver: async (id: string) => until(id, ({ state }) => isFinal(state)),
    /** A name for the prompt of `waits`, and what ends that run with this answer. */
    newGate: (name: string) => {
      const path = join(home.root, name)
      return {
        path,
        open: async (answer: string) => {
          await writeFile(`${path}.new`, answer)
          await rename(`${path}.new`, path)
        },
      }
    },
    answers: async () => readFile(join(home.root, 'answers.md'), 'utf8').catch(() => ''),
    stop: async () => {
      await queue.drain(0)
      await queue.close()
    },
    /** As after kill -9: nothing is said to anyone. */
    vanish: async () => queue.close(),
  }
}

/** Resolves once this is true; whoever calls it has nothing to listen to. */
export const untilTrue = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 10))
}
