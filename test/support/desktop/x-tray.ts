import { once } from 'node:events'
import { connect } from 'node:net'

/**
 * Plays a panel of the older kind on a display without a password: takes the selection
 * `_NET_SYSTEM_TRAY_S0` (X protocol, appendix B). Returns how it ends.
 */
export const playXTray = async (display: string): Promise<() => Promise<void>> => {
  const socket = connect({ path: `/tmp/.X11-unix/X${display.slice(1)}` })
  await once(socket, 'connect')
  const chunks = socket[Symbol.asyncIterator]()
  let rest = Buffer.alloc(0)
  const read = async (length: number): Promise<Buffer> => {
    while (rest.length < length) {
      const { done, value } = await chunks.next()
      if (done) throw new Error('the X server ended')
      rest = Buffer.concat([rest, value as Buffer])
    }
    const taken = rest.subarray(0, length)
    rest = rest.subarray(length)
    return taken
  }
  socket.write(Buffer.from('6c000b000000000000000000', 'hex'))
  const head = await read(8)
  const setup = await read(head.readUInt16LE(6) * 4)
  const window = setup.readUInt32LE(4)
  const vendor = Math.ceil(setup.readUInt16LE(16) / 4) * 4
  const root = setup.readUInt32LE(32 + vendor + 8 * setup.readUInt8(21))

  const name = Buffer.from('_NET_SYSTEM_TRAY_S0\0')
  const internAtom = Buffer.alloc(8)
  internAtom.set([16, 0, 2 + name.length / 4, 0, name.length - 1, 0])
  socket.write(Buffer.concat([internAtom, name]))
  const atom = (await read(32)).readUInt32LE(8)

  const createWindow = Buffer.alloc(32)
  createWindow.set([1, 0, 8])
  createWindow.writeUInt32LE(window, 4)
  createWindow.writeUInt32LE(root, 8)
  createWindow.writeUInt16LE(1, 16)
  createWindow.writeUInt16LE(1, 18)
  createWindow.writeUInt16LE(2, 22)
  const setOwner = Buffer.alloc(16)
  setOwner.set([22, 0, 4])
  setOwner.writeUInt32LE(window, 4)
  setOwner.writeUInt32LE(atom, 8)
  // Its answer comes after all before it is done.
  const getOwner = Buffer.alloc(8)
  getOwner.set([23, 0, 2])
  getOwner.writeUInt32LE(atom, 4)
  socket.write(Buffer.concat([createWindow, setOwner, getOwner]))
  if ((await read(32)).readUInt32LE(8) !== window) throw new Error('the selection was not given')
  return async () => {
    const closed = once(socket, 'close')
    socket.destroy()
    await closed
  }
}
