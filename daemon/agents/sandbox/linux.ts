import { lstatSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { bwrapNamespaces, isInside } from '../../../shared/sandbox/probe.ts'
import { listenBefore } from '../network/listeners.ts'
import { limitBefore } from './limits.ts'
import type { Room } from './visible-files.ts'

/*
 * A sandbox by bubblewrap. The agent sees programs and libraries of the system, and of `/etc` what names,
 * addresses, certificates and time need. Its home, `/tmp` and `/dev/shm` are empty and in memory.
 */

const systemFolders = [
  '/usr /bin /sbin /lib /lib32 /lib64 /libx32',
  // NixOS, Guix, Homebrew.
  '/nix/store /run/current-system /gnu/store /home/linuxbrew/.linuxbrew',
].flatMap((paths) => paths.split(' '))

const systemFiles = [
  'alternatives group passwd nsswitch.conf os-release static profiles',
  'hosts host.conf resolv.conf gai.conf services protocols',
  'ssl pki ca-certificates crypto-policies gnutls',
  'ld.so.cache ld.so.conf ld.so.conf.d ld-musl-x86_64.path ld-musl-aarch64.path',
  'localtime timezone locale.alias mime.types magic terminfo',
].flatMap((names) => names.split(' ').map((name) => join('/etc', name)))

/** Only root can read them, and doorward may run as root. */
const hiddenFolders = ['/etc/ssl/private', '/etc/pki/tls/private', '/etc/pki/nssdb']

/**
 * Root may write to these without any capability, and the kernel runs what some of them name, outside and as
 * root. Bubblewrap covers them only where it may write to the folders themselves.
 */
const systemSettings = 'sys sysrq-trigger fs scsi acpi asound dynamic_debug mtrr'
  .split(' ')
  .map((name) => join('/proc', name))

/** The file descriptor of the filter of system calls. */
const filterDescriptor = 3

/** Root appears as a user of this number: a root without rights cannot make the sandbox of Codex inside. */
const ordinaryId = '1000'

/** The arguments of bubblewrap for a program in this room. */
export const buildBwrap = (room: Room): string[] => {
  const { userHome, doorwardHome } = room
  const { ports } = room.network
  const limited = limitBefore(room.argv, room.limits)
  const size = room.sizesFolders ? ['--size', String(room.limits.disk)] : []
  const makeEmpty = (path: string) => [...size, '--tmpfs', path]
  const system = systemFolders.filter((folder) => statOf(folder) !== undefined)
  const isSystem = (path: string) => system.some((folder) => isInside(path, folder))
  const isShown = (path: string) =>
    isSystem(path) && !isInside(path, userHome) && !isInside(path, doorwardHome)
  const isLinkShown = (path: string) =>
    isShown(path) || systemFiles.some((file) => isInside(path, file))
  const isRoot = process.getuid?.() === 0
  const asUser = isRoot ? ['--uid', ordinaryId, '--gid', ordinaryId] : []
  const namespaces = [...bwrapNamespaces, ...asUser]
  const empty = [
    '/tmp',
    ...(userHome === '/' ? [] : [userHome]),
    ...(isSystem(doorwardHome) ? [doorwardHome] : []),
    ...room.empty,
  ]
  return [
    [room.sandbox, ...namespaces, '--seccomp', String(filterDescriptor)],
    ...system.map(showFolder),
    ...systemFiles.map((path) => ['--ro-bind-try', path, path]),
    ...hiddenFolders.filter((path) => statOf(path)?.isDirectory()).map(makeEmpty),
    ['--proc', '/proc', '--dev', '/dev'],
    ...(isRoot ? systemSettings : []).map((path) => ['--ro-bind-try', path, path]),
    ...empty.map(makeEmpty),
    ...[...room.links].map(([at, to]) => (isLinkShown(at) ? [] : ['--symlink', to, at])),
    ...[...(ports.length > 0 ? [process.execPath] : []), ...room.read].map((path) =>
      isShown(path) ? [] : ['--ro-bind-try', path, path],
    ),
    ...[...room.write].map(([at, what]) => ['--bind-try', what, at]),
    ...room.hidden.map((path) => coverPath(path)),
    ['--remount-ro', '/', ...room.unset.flatMap((name) => ['--unsetenv', name])],
    ['--chdir', room.cwd, '--'],
    ports.length === 0 ? limited : listenBefore(limited, process.execPath, ports),
  ].flat()
}

const coverPath = (path: string): string[] => {
  const stats = statOf(path)
  if (!stats) return []
  return stats.isDirectory() ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path]
}

/** `/bin` is a link to `/usr/bin` on most systems. */
const showFolder = (path: string): string[] =>
  statOf(path)?.isSymbolicLink()
    ? ['--symlink', readlinkSync(path), path]
    : ['--ro-bind', path, path]

const statOf = (path: string) => lstatSync(path, { throwIfNoEntry: false })

/*
 * A filter of system calls (seccomp, classic BPF) that allows no sockets of Unix: no mount hides one that a folder of
 * the run has by accident. io_uring could open sockets past the filter, so it is off. Pairs of sockets still work. The
 * keys that the kernel holds for a session (keyctl) are in no namespace either: tickets of Kerberos are there.
 * A tracer of bubblewrap's own process in the sandbox, the first one, could keep a run from ending.
 */

type Machine = {
  readonly arch: number
  readonly ptrace: number
  readonly socket: number
  readonly addKey: number
}

/**
 * By `process.arch`: the AUDIT_ARCH_… of linux/audit.h, and the numbers of the system calls `ptrace`, `socket`
 * and `add_key`, which `request_key` and `keyctl` follow.
 */
const machines: Readonly<Record<string, Machine>> = {
  x64: { arch: 0xc000003e, ptrace: 101, socket: 41, addKey: 248 },
  arm64: { arch: 0xc00000b7, ptrace: 117, socket: 198, addKey: 217 },
  arm: { arch: 0x40000028, ptrace: 26, socket: 281, addKey: 309 },
  riscv64: { arch: 0xc00000f3, ptrace: 117, socket: 198, addKey: 217 },
}

const afUnix = 1
/** From a virtual machine to its host, past every namespace of networks. */
const afVsock = 40
const ioUringSetup = 425
/** Its number inside. */
const firstProcess = 1
/** Numbers from here on are system calls of x32 on x64. */
const x32 = 0x40000000

const load = 0x20
const jumpIfEqual = 0x15
const jumpIfAtLeast = 0x35
const answer = 0x06
const allow = 0x7fff0000
const refuse = (errno: number): number => 0x00050000 | errno
const eperm = 1
const enosys = 38

/** The filter for this kind of processor, or undefined where the numbers are not known. */
export const buildSocketFilter = (arch: string): Buffer | undefined => {
  const machine = machines[arch]
  if (!machine) return undefined
  // Operation, jump if true, jump if false, operand. Offsets are those of struct seccomp_data.
  const program: readonly (readonly [number, number, number, number])[] = [
    [load, 0, 0, 4], // the architecture
    [jumpIfEqual, 0, 13, machine.arch],
    [load, 0, 0, 0], // the number of the call
    [jumpIfAtLeast, 11, 0, x32],
    [jumpIfEqual, 11, 0, ioUringSetup],
    [jumpIfEqual, 3, 0, machine.ptrace],
    [jumpIfEqual, 4, 0, machine.socket],
    [jumpIfAtLeast, 0, 6, machine.addKey],
    [jumpIfAtLeast, 5, 7, machine.addKey + 3],
    [load, 0, 0, 24], // the second argument of ptrace: a process
    [jumpIfEqual, 4, 3, firstProcess],
    [load, 0, 0, 16], // the first argument of socket: a family
    [jumpIfEqual, 2, 0, afUnix],
    [jumpIfEqual, 1, 0, afVsock],
    [answer, 0, 0, allow],
    [answer, 0, 0, refuse(eperm)],
    [answer, 0, 0, refuse(enosys)],
  ]
  const bytes = Buffer.alloc(program.length * 8)
  for (const [index, [code, yes, no, operand]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(yes, index * 8 + 2)
    bytes.writeUInt8(no, index * 8 + 3)
    bytes.writeUInt32LE(operand, index * 8 + 4)
  }
  return bytes
}
