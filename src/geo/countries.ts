import { normalizePlaceName } from "./normalize-name.ts";

/**
 * Countries: ISO 3166-1 alpha-2 code, alpha-3 code, English name and other common names. Not from `Intl.DisplayNames`, because its names
 * differ between Node and the Workers runtime.
 */
const COUNTRIES = `
AD,AND,Andorra
AE,ARE,United Arab Emirates,UAE,Emirates
AF,AFG,Afghanistan
AG,ATG,Antigua & Barbuda,Antigua
AI,AIA,Anguilla
AL,ALB,Albania
AM,ARM,Armenia
AO,AGO,Angola
AR,ARG,Argentina
AS,ASM,American Samoa
AT,AUT,Austria,Österreich
AU,AUS,Australia
AW,ABW,Aruba
AX,ALA,Åland Islands
AZ,AZE,Azerbaijan
BA,BIH,Bosnia & Herzegovina,Bosnia
BB,BRB,Barbados
BD,BGD,Bangladesh
BE,BEL,Belgium,België,Belgique,Belgien
BF,BFA,Burkina Faso
BG,BGR,Bulgaria
BH,BHR,Bahrain
BI,BDI,Burundi
BJ,BEN,Benin
BL,BLM,St. Barthélemy
BM,BMU,Bermuda
BN,BRN,Brunei,Brunei Darussalam
BO,BOL,Bolivia
BQ,BES,Caribbean Netherlands,Bonaire
BR,BRA,Brazil,Brasil
BS,BHS,Bahamas,The Bahamas
BT,BTN,Bhutan
BW,BWA,Botswana
BY,BLR,Belarus
BZ,BLZ,Belize
CA,CAN,Canada
CC,CCK,Cocos Islands
CD,COD,DR Congo,DRC,Democratic Republic of the Congo,Congo-Kinshasa
CF,CAF,Central African Republic
CG,COG,Congo,Republic of the Congo,Congo-Brazzaville
CH,CHE,Switzerland,Schweiz,Suisse,Svizzera
CI,CIV,Ivory Coast,Côte d'Ivoire
CK,COK,Cook Islands
CL,CHL,Chile
CM,CMR,Cameroon
CN,CHN,China,PRC,People's Republic of China
CO,COL,Colombia
CR,CRI,Costa Rica
CU,CUB,Cuba
CV,CPV,Cape Verde,Cabo Verde
CW,CUW,Curaçao
CX,CXR,Christmas Island
CY,CYP,Cyprus
CZ,CZE,Czechia,Czech Republic,Česko
DE,DEU,Germany,Deutschland
DJ,DJI,Djibouti
DK,DNK,Denmark,Danmark
DM,DMA,Dominica
DO,DOM,Dominican Republic
DZ,DZA,Algeria
EC,ECU,Ecuador
EE,EST,Estonia,Eesti
EG,EGY,Egypt,Misr
EH,ESH,Western Sahara
ER,ERI,Eritrea
ES,ESP,Spain,España
ET,ETH,Ethiopia
FI,FIN,Finland,Suomi
FJ,FJI,Fiji
FK,FLK,Falkland Islands
FM,FSM,Micronesia,Federated States of Micronesia
FO,FRO,Faroe Islands
FR,FRA,France
GA,GAB,Gabon
GB,GBR,United Kingdom,UK,Great Britain,Britain,England,Scotland,Wales,Northern Ireland
GD,GRD,Grenada
GE,GEO,Georgia
GF,GUF,French Guiana
GG,GGY,Guernsey
GH,GHA,Ghana
GI,GIB,Gibraltar
GL,GRL,Greenland
GM,GMB,Gambia,The Gambia
GN,GIN,Guinea
GP,GLP,Guadeloupe
GQ,GNQ,Equatorial Guinea
GR,GRC,Greece,Hellas
GS,SGS,South Georgia
GT,GTM,Guatemala
GU,GUM,Guam
GW,GNB,Guinea-Bissau
GY,GUY,Guyana
HK,HKG,Hong Kong,Hong Kong SAR
HN,HND,Honduras
HR,HRV,Croatia,Hrvatska
HT,HTI,Haiti
HU,HUN,Hungary,Magyarország
ID,IDN,Indonesia
IE,IRL,Ireland,Éire,Republic of Ireland
IL,ISR,Israel
IM,IMN,Isle of Man
IN,IND,India,Bharat
IO,IOT,British Indian Ocean Territory
IQ,IRQ,Iraq
IR,IRN,Iran,Islamic Republic of Iran
IS,ISL,Iceland,Ísland
IT,ITA,Italy,Italia
JE,JEY,Jersey
JM,JAM,Jamaica
JO,JOR,Jordan
JP,JPN,Japan,Nippon
KE,KEN,Kenya
KG,KGZ,Kyrgyzstan
KH,KHM,Cambodia
KI,KIR,Kiribati
KM,COM,Comoros
KN,KNA,St. Kitts & Nevis
KP,PRK,North Korea,DPRK
KR,KOR,South Korea,Korea,Republic of Korea
KW,KWT,Kuwait
KY,CYM,Cayman Islands
KZ,KAZ,Kazakhstan
LA,LAO,Laos,Lao PDR
LB,LBN,Lebanon
LC,LCA,St. Lucia
LI,LIE,Liechtenstein
LK,LKA,Sri Lanka
LR,LBR,Liberia
LS,LSO,Lesotho
LT,LTU,Lithuania,Lietuva
LU,LUX,Luxembourg
LV,LVA,Latvia,Latvija
LY,LBY,Libya
MA,MAR,Morocco,Maroc
MC,MCO,Monaco
MD,MDA,Moldova,Republic of Moldova
ME,MNE,Montenegro
MF,MAF,St. Martin
MG,MDG,Madagascar
MH,MHL,Marshall Islands
MK,MKD,North Macedonia,Macedonia
ML,MLI,Mali
MM,MMR,Myanmar,Burma
MN,MNG,Mongolia
MO,MAC,Macao,Macau
MP,MNP,Northern Mariana Islands
MQ,MTQ,Martinique
MR,MRT,Mauritania
MS,MSR,Montserrat
MT,MLT,Malta
MU,MUS,Mauritius
MV,MDV,Maldives
MW,MWI,Malawi
MX,MEX,Mexico,México
MY,MYS,Malaysia
MZ,MOZ,Mozambique
NA,NAM,Namibia
NC,NCL,New Caledonia
NE,NER,Niger
NF,NFK,Norfolk Island
NG,NGA,Nigeria
NI,NIC,Nicaragua
NL,NLD,Netherlands,Holland,Nederland
NO,NOR,Norway,Norge
NP,NPL,Nepal
NR,NRU,Nauru
NU,NIU,Niue
NZ,NZL,New Zealand,Aotearoa
OM,OMN,Oman
PA,PAN,Panama
PE,PER,Peru,Perú
PF,PYF,French Polynesia
PG,PNG,Papua New Guinea
PH,PHL,Philippines,The Philippines
PK,PAK,Pakistan
PL,POL,Poland,Polska
PM,SPM,St. Pierre & Miquelon
PN,PCN,Pitcairn Islands
PR,PRI,Puerto Rico
PS,PSE,Palestine,Palestinian Territories
PT,PRT,Portugal
PW,PLW,Palau
PY,PRY,Paraguay
QA,QAT,Qatar
RE,REU,Réunion
RO,ROU,Romania,România
RS,SRB,Serbia,Srbija
RU,RUS,Russia,Russian Federation
RW,RWA,Rwanda
SA,SAU,Saudi Arabia,KSA
SB,SLB,Solomon Islands
SC,SYC,Seychelles
SD,SDN,Sudan
SE,SWE,Sweden,Sverige
SG,SGP,Singapore
SH,SHN,St. Helena
SI,SVN,Slovenia,Slovenija
SJ,SJM,Svalbard & Jan Mayen
SK,SVK,Slovakia,Slovak Republic
SL,SLE,Sierra Leone
SM,SMR,San Marino
SN,SEN,Senegal
SO,SOM,Somalia
SR,SUR,Suriname
SS,SSD,South Sudan
ST,STP,São Tomé & Príncipe
SV,SLV,El Salvador
SX,SXM,Sint Maarten,St. Maarten
SY,SYR,Syria,Syrian Arab Republic
SZ,SWZ,Eswatini,Swaziland
TC,TCA,Turks & Caicos Islands
TD,TCD,Chad
TG,TGO,Togo
TH,THA,Thailand
TJ,TJK,Tajikistan
TK,TKL,Tokelau
TL,TLS,Timor-Leste,East Timor
TM,TKM,Turkmenistan
TN,TUN,Tunisia
TO,TON,Tonga
TR,TUR,Turkey,Türkiye
TT,TTO,Trinidad & Tobago,Trinidad
TV,TUV,Tuvalu
TW,TWN,Taiwan,Chinese Taipei
TZ,TZA,Tanzania,United Republic of Tanzania
UA,UKR,Ukraine,Ukraina
UG,UGA,Uganda
US,USA,United States,USA,United States of America,America
UY,URY,Uruguay
UZ,UZB,Uzbekistan
VA,VAT,Vatican City,Vatican,Holy See
VC,VCT,St. Vincent & Grenadines
VE,VEN,Venezuela
VG,VGB,British Virgin Islands
VI,VIR,U.S. Virgin Islands
VN,VNM,Vietnam,Viet Nam
VU,VUT,Vanuatu
WF,WLF,Wallis & Futuna
WS,WSM,Samoa
XK,XKK,Kosovo
YE,YEM,Yemen
YT,MYT,Mayotte
ZA,ZAF,South Africa,RSA
ZM,ZMB,Zambia
ZW,ZWE,Zimbabwe
`;

const countryKey = (name: string): string =>
  normalizePlaceName(name.replaceAll("&", " and "))
    .replace(/^the /, "")
    .replace(/\bst\b/g, "saint");

function indexNames(): Map<string, string> {
  const codes = new Map<string, string>();
  for (const line of COUNTRIES.trim().split("\n")) {
    const [code = "", ...names] = line.split(",");
    for (const name of [code, ...names]) codes.set(countryKey(name), code);
  }
  return codes;
}
let codes: Map<string, string> | undefined;

/** Returns the alpha-2 code of a country by one of its codes or names. */
export function countryCode(name: string): string | undefined {
  codes ??= indexNames();
  return codes.get(countryKey(name));
}
