import { connect } from 'node:net'

/** Whether something listens at this host and port; asks for so many milliseconds and sends nothing. */
export const canConnect = async (host: string, port: number, limitMs: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port })
    const settle = (listens: boolean) => {
      socket.destroy()
      resolve(listens)
    }
    socket.setTimeout(limitMs, () => settle(false))
    socket.once('connect', () => settle(true))
    socket.once('error', () => settle(false))
  })
