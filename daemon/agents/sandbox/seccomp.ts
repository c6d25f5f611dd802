/*
 * A filter of system calls (seccomp, classic BPF) that allows no sockets of Unix: with the network of the
 * machine a sandbox also has its abstract sockets, among them that of X11 and some session buses, which no
 * mount hides. io_uring could open sockets past the filter, so it is off. Pairs of sockets still work. The
 * keys that the kernel holds for a session (keyctl) are in no namespace either: tickets of Kerberos are there.
 */

type Machine = { readonly arch: number; readonly socket: number; readonly addKey: number }

/**
 * By `process.arch`: the AUDIT_ARCH_… of linux/audit.h, and the numbers of the system calls `socket` and
 * `add_key`, which `request_key` and `keyctl` follow.
 */
const machines: Readonly<Record<string, Machine>> = {
  x64: { arch: 0xc000003e, socket: 41, addKey: 248 },
  arm64: { arch: 0xc00000b7, socket: 198, addKey: 217 },
  arm: { arch: 0x40000028, socket: 281, addKey: 309 },
  riscv64: { arch: 0xc00000f3, socket: 198, addKey: 217 },
}

const afUnix = 1
/** From a virtual machine to its host, past every namespace of networks. */
const afVsock = 40
const ioUringSetup = 425
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
    [jumpIfEqual, 0, 10, machine.arch],
    [load, 0, 0, 0], // the number of the call
    [jumpIfAtLeast, 8, 0, x32],
    [jumpIfEqual, 8, 0, ioUringSetup],
    [jumpIfEqual, 2, 0, machine.socket],
    [jumpIfAtLeast, 0, 4, machine.addKey],
    [jumpIfAtLeast, 3, 5, machine.addKey + 3],
    [load, 0, 0, 16], // its first argument
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
