import { XMLParser, XMLValidator } from 'fast-xml-parser'

/*
 * XML as an object of its elements: several of one name are a list, attributes have an @ before their name, and all
 * values are text. Nothing is expanded or fetched.
 */

/** The parser takes half a second for a million characters of tags, and nothing else runs meanwhile. */
const maxCharacters = 1024 * 1024
const maxTags = 50_000

const parser = new XMLParser({
  processEntities: false,
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  parseTagValue: false,
  parseAttributeValue: false,
  ignoreDeclaration: true,
  ignorePiTags: true,
})

/** Throws a RangeError that says what is wrong with the text, without any part of it. */
export const parseXml = (text: string): unknown => {
  if (text.length > maxCharacters) throw new RangeError('is XML of more than 1 MB')
  if (text.split('<', maxTags + 2).length > maxTags + 1)
    throw new RangeError(`is XML with more than ${maxTags} tags`)
  // Entities are how a short text becomes a huge one, or reads a file.
  if (/<!(?:DOCTYPE|ENTITY)/i.test(text))
    throw new RangeError('is XML with a document type or entities')
  if (XMLValidator.validate(text) !== true) throw new RangeError('is not valid XML')
  try {
    return parser.parse(text) as unknown
  } catch {
    throw new RangeError('is XML that is nested too deeply')
  }
}
