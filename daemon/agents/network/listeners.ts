import type { Server } from 'node:net'

/*
 * A sandbox has a network of its own, without a way out. Before the program starts, a few lines of Node listen there
 * on loopback ports, and hand the listening sockets to the daemon over a channel (node:child_process, "Example:
 * sending a server object"). So the daemon accepts what connects in there, and nothing that could be killed or
 * traced stays in the sandbox. The shell then closes the channel and becomes the program.
 */

/** The descriptor of the channel, after that of the filter of system calls. */
const channelDescriptor = 4

const script = [
  'NODE_OPTIONS= "$1" -e "$2" "$3" </dev/null >/dev/null || exit 125',
  'shift 3',
  'unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE',
  `exec "$@" ${channelDescriptor}<&-`,
].join('\n')

const program = `
const { createServer } = require('node:net')
const fail = ({ message }) => { console.error('network: ' + message); process.exit(1) }
// The daemon has all of them.
process.once('disconnect', () => process.exit())
Promise.all(process.argv[1].split(',').map(Number).map((port) => new Promise((resolve, reject) => {
  const server = createServer().once('error', reject)
  server.listen(port, '127.0.0.1', () => resolve([port, server]))
}))).then((all) => { for (const [port, server] of all) process.send(port, server) }, fail)
`

/** The words that start a program in a sandbox once something listens on these ports. */
export const listenBefore = (
  argv: readonly string[],
  node: string,
  ports: readonly number[],
): string[] => ['/bin/sh', '-c', script, 'network', node, program, ports.join(','), ...argv]

/** Sockets that a child process hands over while it starts. */
export type Listeners = {
  readonly ports: readonly number[]
  readonly onListener: (port: number, listener: Server) => void
}
