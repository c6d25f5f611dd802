import type { Machine, Status } from '../../shared/api/api.ts'
import { type Check, checksFor } from '../../shared/api/checks.ts'
import type { Gateway } from '../../shared/config/schema.ts'
import { formatDuration } from '../../shared/text.ts'
import { isAtLeast, version } from '../../shared/version.ts'
import { toAgentProblem } from './nats/agent-faults.ts'
import type { Queue } from './queue.ts'

const { ok, warning, error } = checksFor('machines')

/** The broker in Debian 12. */
const oldestBroker = '2.9'
const notableMs = 60_000

/** Checks the broker and the other machines, as this daemon sees them. No row with a queue in memory. */
export const checkMachines = (
  { queue }: Gateway,
  {
    broker,
    machines = [],
    agentFaults = [],
  }: Partial<ReturnType<NonNullable<Queue['machines']>>> = {},
): Check[] => {
  if (queue.engine === 'memory') return []
  if (!broker)
    return [
      warning('broker', 'the daemon runs with its queue in memory', 'doorward daemon restart'),
    ]
  if (!broker.connected)
    return [
      error(
        'broker',
        broker.problem ?? 'not connected',
        `check ${queue.servers_env} and the credentials, and that nats-server runs there with JetStream`,
      ),
    ]
  return [
    broker.problem === undefined
      ? checkBroker(broker)
      : error('broker', broker.problem, `set ${queue.key_env} to the same on all machines`),
    ...(broker.notOffered === undefined
      ? []
      : [warning('agents', broker.notOffered, 'doorward help several-machines')]),
    checkPartner(queue.role, machines),
    ...agentFaults.map(toAgentProblem).map(({ detail, hint }) => warning('agents', detail, hint)),
    ...machines.flatMap(checkMachine),
  ]
}

const checkBroker = ({ server, version }: NonNullable<Status['broker']>): Check =>
  version === undefined || isAtLeast(version, oldestBroker)
    ? ok('broker', `${server ?? 'connected'}, nats-server ${version ?? ''}, in memory`)
    : error('broker', `nats-server ${version} is too old`, `install ${oldestBroker} or newer`)

/** A receiver without a worker runs nothing, and a worker without a receiver gets nothing. */
const checkPartner = (role: Gateway['queue']['role'], machines: readonly Machine[]): Check => {
  const has = (other: Machine['role']) =>
    machines.some((machine) => machine.role === other || machine.role === 'both')
  const wanted = role === 'worker' ? 'receiver' : 'worker'
  return has(wanted)
    ? ok('machines', `${machines.length} with this one`)
    : warning(
        'machines',
        `no ${wanted} has been heard of in the last 30 seconds`,
        `start one with the same broker and the same key, and queue.role: ${wanted}`,
      )
}

const checkMachine = ({ name, version: other, clockMs = 0 }: Machine): Check[] => [
  ...(other === version
    ? []
    : [
        warning(name, `it runs doorward ${other}, this one ${version}`, 'install the same version'),
      ]),
  ...(Math.abs(clockMs) > notableMs
    ? [
        warning(
          name,
          `its clock is ${formatDuration(Math.abs(clockMs))} ${clockMs > 0 ? 'ahead' : 'behind'}`,
          'set the clock, on Linux by: sudo timedatectl set-ntp true',
        ),
      ]
    : []),
]
