import { randomHex } from '../random-hex.ts'
import type { ValueStyle } from './expand.ts'

/**
 * 64 random bits as hex digits: the name of the markers of one prompt, which no sender can guess. Empty
 * for a prompt without markers.
 */
export const fenceIdFor = ({ eventText }: ValueStyle): string =>
  eventText === 'fenced' ? randomHex(8) : ''
