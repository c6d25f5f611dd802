import { lstatSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { bwrapNamespaces } from '../../../shared/sandbox/probe.ts'
import { isInside } from '../../../shared/sandbox/hidden.ts'
import type { Room } from './room.ts'

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
export const filterDescriptor = 3

/** Root appears as a user of this number: a root without rights cannot make the sandbox of Codex inside. */
const ordinaryId = '1000'

/** The arguments of bubblewrap for a program in this room. */
export const buildBwrap = (room: Room): string[] => {
  const { userHome, doorwardHome } = room
  const system = systemFolders.filter((folder) => statOf(folder) !== undefined)
  const isSystem = (path: string) => system.some((folder) => isInside(path, folder))
  const isShown = (path: string) =>
    isSystem(path) && !isInside(path, userHome) && !isInside(path, doorwardHome)
  const isRoot = process.getuid?.() === 0
  const asUser = isRoot ? ['--uid', ordinaryId, '--gid', ordinaryId] : []
  const namespaces = [...bwrapNamespaces, ...asUser, ...(room.network ? [] : ['--unshare-net'])]
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
    ...[...room.links].map(([at, to]) => (isShown(at) ? [] : ['--symlink', to, at])),
    ...room.read.map((path) => (isShown(path) ? [] : ['--ro-bind-try', path, path])),
    ...[...room.write].map(([at, what]) => ['--bind-try', what, at]),
    ['--remount-ro', '/', ...room.unset.flatMap((name) => ['--unsetenv', name])],
    ['--chdir', room.cwd, '--'],
    room.argv,
  ].flat()
}

const makeEmpty = (path: string): string[] => ['--tmpfs', path]

/** `/bin` is a link to `/usr/bin` on most systems. */
const showFolder = (path: string): string[] =>
  statOf(path)?.isSymbolicLink()
    ? ['--symlink', readlinkSync(path), path]
    : ['--ro-bind', path, path]

const statOf = (path: string) => lstatSync(path, { throwIfNoEntry: false })
