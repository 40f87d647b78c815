-- One row per closed month and person who was forgotten since: the place of the name among the users of its
-- lines, in alphabetical order, and the word that stands for it where the month is settled anew. The month's
-- bytes are signed and keep the name.
create table month_user (
    month varchar not null,
    place bigint not null,
    instead varchar not null,
    primary key (month, place)
);
