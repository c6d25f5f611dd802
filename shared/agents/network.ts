import { isIP } from 'node:net'
import { z } from 'zod'
import { type NetworkMode, networkModes } from '../api/api.ts'
import { bareHost } from '../net.ts'
import { isMetadata } from '../network/addresses.ts'

/* The network of an agent in a sandbox, as `network` of agents.yaml says it. */

/** Hosts that a run may reach, on these ports. */
export type HostRule = {
  /** As a URL has it: lower case, IPv6 without brackets. */
  readonly host: string
  /** The host's subdomains in place of itself. */
  readonly isDomain: boolean
  readonly ports: readonly number[]
}

const webPorts = [80, 443]

const hostForm = /^(\*\.)?(\[[\da-f:.]+\]|[^\s:/?#@*[\]\\%]+)(?::(\d{1,5}))?$/i

/** The rule of `example.com`, `*.example.com`, `10.0.0.5:8080` or `[::1]:8080`; undefined for any other text. */
export const parseHostRule = (text: string): HostRule | undefined => {
  const [, star, name = '', port] = hostForm.exec(text) ?? []
  const address = `http://${name}${port === undefined ? '' : `:${port}`}`
  if (name === '' || !URL.canParse(address)) return undefined
  const host = toHost(new URL(address))
  const isDomain = star !== undefined
  if (host === '' || (isDomain && isIP(host) !== 0)) return undefined
  return { host, isDomain, ports: port === undefined ? webPorts : [Number(port)] }
}

/** The host of a URL as rules have it. */
export const toHost = ({ hostname }: URL): string => bareHost(hostname).replace(/\.$/, '')

const hostText = z
  .string()
  .refine(
    (text) => parseHostRule(text) !== undefined,
    'write a host, with a port or without: example.com, *.example.com, localhost:8080',
  )
  .refine(
    (text) => !isMetadata(parseHostRule(text)?.host ?? ''),
    'no agent in a sandbox reaches the metadata of a machine',
  )

export const networkSchema = z
  .union([
    z.enum(networkModes),
    z.strictObject({
      allow: z
        .array(hostText)
        .min(1)
        .max(100)
        .describe(
          'Hosts that it reaches besides its model: example.com, *.example.com, localhost:8080.',
        ),
    }),
  ])
  .optional()
  .describe(
    'What it reaches in a sandbox. open: every host; model: the hosts of its model; {allow: [hosts]}: these too; off: nothing. All but open need a sandbox. Default model with tools: write, else open.',
  )

export type NetworkSetting = z.output<typeof networkSchema>

/** The mode that an agent's entry names; undefined where it names none. */
export const readMode = (network: NetworkSetting): NetworkMode | undefined =>
  typeof network === 'object' ? 'model' : network

/** The rules of `allow`. */
export const readAllowed = (network: NetworkSetting): HostRule[] =>
  typeof network === 'object' ? network.allow.flatMap((text) => parseHostRule(text) ?? []) : []

/** Whether the owner wants less than every host, which only a sandbox can hold. */
export const isLimited = (network: NetworkSetting): boolean =>
  network !== undefined && readMode(network) !== 'open'
