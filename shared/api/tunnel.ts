/*
 * The documents of the local API about the tunnel. Without zod, as the command line names the programs in
 * its help.
 */

/** In the order in which they are looked for: the first has an address of its own that stays. */
export const tunnelPrograms = ['tailscale', 'cloudflared', 'ngrok', 'zrok'] as const
export type TunnelName = (typeof tunnelPrograms)[number]

/** `GET /daemon/tunnel`, and the response of `POST` and `DELETE` there. */
export type TunnelStatus = {
  /** `down`: the program runs, and no request arrives. */
  readonly state: 'off' | 'starting' | 'up' | 'down'
  /** The address of this machine that serves webhooks alone; null without `server.public_port`. */
  readonly leadsTo: string | null
  readonly program?: TunnelName
  readonly url?: string
  /** When a request of our own last came through it. */
  readonly arrivedAt?: string
  /** Paths of the webhooks whose hooks got the address since the tunnel was started. */
  readonly moved: readonly string[]
  readonly problems: readonly {
    readonly code: string
    readonly detail: string
    readonly hint: string
  }[]
}
